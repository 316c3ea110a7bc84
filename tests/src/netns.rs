//! A machine of its own, as far as the network goes: a network namespace (Linux) with two cables to this one,
//! each of which a test pulls out. Then packets are lost without an error, as when a switch dies.

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};
use nix::unistd::Uid;

use crate::programs::{Running, program};

/// The network of all cables: addresses that are kept for tests of network devices (RFC 2544).
const NETWORK: u32 = Ipv4Addr::new(198, 18, 0, 0).to_bits();
/// How many cables have room in it, four addresses each.
const CABLES: u32 = 1 << 15;

/// A cable of an [`NetworkNamespace`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cable {
    /// To those who call the programs in the namespace.
    Front,
    /// To what these programs call.
    Back,
}

impl Cable {
    const ALL: [Self; 2] = [Self::Front, Self::Back];
}

/// A network namespace, gone with its cables when it is dropped.
#[derive(Debug)]
pub struct NetworkNamespace {
    number: u32,
}

impl NetworkNamespace {
    /// A namespace with both cables plugged in; none if this user may not make any, or the system has none: that is
    /// printed.
    ///
    /// # Errors
    ///
    /// If `ip` (Debian's package `iproute2`) cannot be started.
    #[expect(
        clippy::print_stderr,
        reason = "whoever reads a test's output is to see it"
    )]
    pub fn new() -> anyhow::Result<Option<Self>> {
        if !Uid::effective().is_root() {
            eprintln!("NOT RUN: only root may make the network of this test");
            return Ok(None);
        }
        ip(&["-V"])?;
        let netns = Self {
            number: std::process::id(),
        };
        match netns.set_up() {
            Ok(()) => Ok(Some(netns)),
            Err(error) => {
                eprintln!("NOT RUN: this machine gives no network namespaces: {error}");
                Ok(None)
            }
        }
    }

    /// Makes the namespace and its cables.
    fn set_up(&self) -> anyhow::Result<()> {
        let name = self.name();
        ip(&["netns", "add", &name])?;
        ip(&["-n", &name, "link", "set", "lo", "up"])?;
        for cable in Cable::ALL {
            let [here, there] = [self.plug(cable, 'h'), self.plug(cable, 'i')];
            ip(&[
                "link", "add", &here, "type", "veth", "peer", "name", &there, "netns", &name,
            ])?;
            let address = format!("{}/30", self.outside_address(cable));
            ip(&["address", "add", &address, "dev", &here])?;
            let address = format!("{}/30", self.address(cable));
            ip(&["-n", &name, "address", "add", &address, "dev", &there])?;
            ip(&["link", "set", &here, "up"])?;
            ip(&["-n", &name, "link", "set", &there, "up"])?;
        }
        Ok(())
    }

    fn name(&self) -> String {
        format!("rookery-{}", self.number)
    }

    /// The name of one end of a cable: at home or in the namespace.
    fn plug(&self, cable: Cable, end: char) -> String {
        let cable = match cable {
            Cable::Front => 'f',
            Cable::Back => 'b',
        };
        format!("rk{}{cable}{end}", self.number)
    }

    fn host(&self, cable: Cable, host: u32) -> Ipv4Addr {
        let place = match cable {
            Cable::Front => 2 * self.number,
            Cable::Back => 2 * self.number + 1,
        };
        Ipv4Addr::from_bits(NETWORK + 4 * (place % CABLES) + host)
    }

    /// This machine's address at the cable.
    pub fn outside_address(&self, cable: Cable) -> Ipv4Addr {
        self.host(cable, 1)
    }

    /// The namespace's address at the cable.
    pub fn address(&self, cable: Cable) -> Ipv4Addr {
        self.host(cable, 2)
    }

    /// Plugs a cable in or pulls it out, at the end of whoever is called: the caller's own end would tell it.
    ///
    /// # Errors
    ///
    /// If the system refuses.
    pub fn set(&self, cable: Cable, plug: Plug) -> anyhow::Result<()> {
        let state = match plug {
            Plug::In => "up",
            Plug::Out => "down",
        };
        match cable {
            Cable::Back => ip(&["link", "set", &self.plug(cable, 'h'), state]),
            Cable::Front => {
                let there = self.plug(cable, 'i');
                ip(&["-n", &self.name(), "link", "set", &there, state])
            }
        }
    }

    /// Starts a program in the namespace; what it prints goes to `log`.
    ///
    /// # Errors
    ///
    /// If the program is missing or cannot be started.
    pub fn start(&self, name: &str, log: &Path, arguments: &[&str]) -> anyhow::Result<Running> {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name()]);
        command.arg(program(name)?).args(arguments);
        Running::spawn(name, command, log)
    }
}

/// Whether a cable is plugged in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plug {
    /// Packets pass.
    In,
    /// They are lost.
    Out,
}

impl Drop for NetworkNamespace {
    fn drop(&mut self) {
        // The cables go with the namespace. One that stays is only in the way of the next test's eyes.
        let _ = ip(&["netns", "delete", &self.name()]);
    }
}

fn ip(arguments: &[&str]) -> anyhow::Result<()> {
    let done = Command::new("ip").args(arguments).output();
    let done = done.context("`ip` cannot be started: install the package iproute2")?;
    let said = String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.success(), "ip {arguments:?} failed: {said}");
    Ok(())
}
