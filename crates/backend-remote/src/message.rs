//! What both sides say, and how it is written: see the crate's documentation.

use rookery_common::ids::ContentHash;

use crate::error::ConnectionError;
use crate::frame::{Fields, frame, write_text};
use crate::{MAGIC, VERSION};

/// Most bytes of a network's file in one frame.
pub(crate) const DATA_BYTES: usize = 1 << 20;

/// What a client says. Positions are still packed: what they look like depends on the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Request<'a> {
    Hello {
        version: u16,
        proof: [u8; 32],
    },
    Network {
        hash: ContentHash,
        length: u64,
    },
    Data(&'a [u8]),
    Evaluate {
        id: u32,
        network: u32,
        positions: &'a [u8],
    },
    Release {
        network: u32,
    },
}

/// What a server says. Evaluations are still packed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply<'a> {
    Challenge {
        version: u16,
        wants_token: bool,
        nonce: [u8; 32],
    },
    Welcome(Offer),
    Refused(String),
    Send,
    Ready {
        network: u32,
        precision: String,
    },
    Failed {
        passing: bool,
        why: String,
    },
    Evaluations {
        id: u32,
        evaluations: &'a [u8],
    },
    NotEvaluated {
        id: u32,
        why: String,
    },
    Alive,
}

/// What a server offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Offer {
    /// The device's name on its machine.
    pub(crate) device: String,
    pub(crate) precision: String,
    /// The class of its results, by which audits judge.
    pub(crate) class: String,
}

impl<'a> Request<'a> {
    /// The frame that says this.
    pub(crate) fn to_frame(self) -> Vec<u8> {
        match self {
            Self::Hello { version, proof } => frame(1, |out| {
                out.extend_from_slice(&MAGIC);
                out.extend_from_slice(&version.to_le_bytes());
                out.extend_from_slice(&proof);
            }),
            Self::Network { hash, length } => frame(2, |out| {
                out.extend_from_slice(hash.as_bytes());
                out.extend_from_slice(&length.to_le_bytes());
            }),
            Self::Data(data) => frame(3, |out| out.extend_from_slice(data)),
            Self::Evaluate {
                id,
                network,
                positions,
            } => frame(4, |out| {
                out.extend_from_slice(&id.to_le_bytes());
                out.extend_from_slice(&network.to_le_bytes());
                out.extend_from_slice(positions);
            }),
            Self::Release { network } => {
                frame(5, |out| out.extend_from_slice(&network.to_le_bytes()))
            }
        }
    }

    /// What a frame says.
    pub(crate) fn read(kind: u8, payload: &'a [u8]) -> Result<Self, ConnectionError> {
        let mut fields = Fields::new(payload);
        let request = match kind {
            1 => {
                check_magic(&mut fields)?;
                let version = fields.u16()?;
                if version != VERSION {
                    // What follows may be laid out differently.
                    let proof = [0; 32];
                    return Ok(Self::Hello { version, proof });
                }
                let proof = fields.array()?;
                Self::Hello { version, proof }
            }
            2 => Self::Network {
                hash: ContentHash::from_bytes(fields.array()?),
                length: fields.u64()?,
            },
            3 => match fields.rest() {
                data if data.len() <= DATA_BYTES => Self::Data(data),
                data => {
                    let what = format!("{} bytes of a network at once", data.len());
                    return Err(ConnectionError::protocol(what));
                }
            },
            4 => Self::Evaluate {
                id: fields.u32()?,
                network: fields.u32()?,
                positions: fields.rest(),
            },
            5 => Self::Release {
                network: fields.u32()?,
            },
            other => return Err(unknown(other)),
        };
        fields.end()?;
        Ok(request)
    }
}

impl<'a> Reply<'a> {
    /// The frame that says this.
    pub(crate) fn to_frame(&self) -> Vec<u8> {
        match self {
            Self::Challenge {
                version,
                wants_token,
                nonce,
            } => frame(16, |out| {
                out.extend_from_slice(&MAGIC);
                out.extend_from_slice(&version.to_le_bytes());
                out.push(u8::from(*wants_token));
                out.extend_from_slice(nonce);
            }),
            Self::Welcome(offer) => frame(17, |out| {
                for text in [&offer.device, &offer.precision, &offer.class] {
                    write_text(text, out);
                }
            }),
            Self::Refused(why) => frame(18, |out| write_text(why, out)),
            Self::Send => frame(19, |_| {}),
            Self::Ready { network, precision } => frame(20, |out| {
                out.extend_from_slice(&network.to_le_bytes());
                write_text(precision, out);
            }),
            Self::Failed { passing, why } => frame(21, |out| {
                out.push(u8::from(*passing));
                write_text(why, out);
            }),
            Self::Evaluations { id, evaluations } => frame(22, |out| {
                out.extend_from_slice(&id.to_le_bytes());
                out.extend_from_slice(evaluations);
            }),
            Self::NotEvaluated { id, why } => frame(23, |out| {
                out.extend_from_slice(&id.to_le_bytes());
                write_text(why, out);
            }),
            Self::Alive => frame(24, |_| {}),
        }
    }

    /// What a frame says.
    pub(crate) fn read(kind: u8, payload: &'a [u8]) -> Result<Self, ConnectionError> {
        let mut fields = Fields::new(payload);
        let reply = match kind {
            16 => {
                check_magic(&mut fields)?;
                let version = fields.u16()?;
                if version != VERSION {
                    // What follows may be laid out differently.
                    let (wants_token, nonce) = (false, [0; 32]);
                    return Ok(Self::Challenge {
                        version,
                        wants_token,
                        nonce,
                    });
                }
                let (wants_token, nonce) = (fields.flag()?, fields.array()?);
                Self::Challenge {
                    version,
                    wants_token,
                    nonce,
                }
            }
            17 => Self::Welcome(Offer {
                device: fields.text()?,
                precision: fields.text()?,
                class: fields.text()?,
            }),
            18 => Self::Refused(fields.text()?),
            19 => Self::Send,
            20 => Self::Ready {
                network: fields.u32()?,
                precision: fields.text()?,
            },
            21 => Self::Failed {
                passing: fields.flag()?,
                why: fields.text()?,
            },
            22 => Self::Evaluations {
                id: fields.u32()?,
                evaluations: fields.rest(),
            },
            23 => Self::NotEvaluated {
                id: fields.u32()?,
                why: fields.text()?,
            },
            24 => Self::Alive,
            other => return Err(unknown(other)),
        };
        fields.end()?;
        Ok(reply)
    }
}

fn check_magic(fields: &mut Fields<'_>) -> Result<(), ConnectionError> {
    if fields.array()? == MAGIC {
        Ok(())
    } else {
        Err(ConnectionError::protocol(
            "no device of Rookery speaks there",
        ))
    }
}

fn unknown(kind: u8) -> ConnectionError {
    ConnectionError::protocol(format!("a frame of the unknown kind {kind}"))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn requests(data: &[u8]) -> [Request<'_>; 5] {
        [
            Request::Hello {
                version: VERSION,
                proof: [3; 32],
            },
            Request::Network {
                hash: ContentHash::of(data),
                length: data.len() as u64,
            },
            Request::Data(data),
            Request::Evaluate {
                id: 1,
                network: u32::MAX,
                positions: data,
            },
            Request::Release { network: 2 },
        ]
    }

    fn replies<'a>(data: &'a [u8], text: &str) -> [Reply<'a>; 9] {
        let text = || text.to_owned();
        [
            Reply::Challenge {
                version: VERSION,
                wants_token: true,
                nonce: [9; 32],
            },
            Reply::Welcome(Offer {
                device: text(),
                precision: "f32".to_owned(),
                class: text(),
            }),
            Reply::Refused(text()),
            Reply::Send,
            Reply::Ready {
                network: 7,
                precision: text(),
            },
            Reply::Failed {
                passing: true,
                why: text(),
            },
            Reply::Evaluations {
                id: 4,
                evaluations: data,
            },
            Reply::NotEvaluated { id: 5, why: text() },
            Reply::Alive,
        ]
    }

    /// A terminal would obey it, and a log would show lines that nobody wrote.
    #[test]
    fn a_text_with_control_characters_is_neither_sent_nor_taken() {
        let sent = Reply::Refused("full\u{1b}[2J\r\nINFO".to_owned()).to_frame();
        let taken = Reply::read(sent[4], &sent[5..]).unwrap();
        assert_eq!(taken, Reply::Refused("full[2JINFO".to_owned()));
        let error = Reply::read(sent[4], b"\x05\x00a\x1b[2J").unwrap_err();
        assert!(
            error.to_string().contains("characters that move"),
            "{error}"
        );
    }

    proptest! {
        #[test]
        fn what_is_said_is_understood(data in vec(any::<u8>(), 0..200), text in "[ -~äß♞]{0,40}") {
            for request in requests(&data) {
                let frame = request.to_frame();
                let length = u32::from_le_bytes(frame[..4].try_into().unwrap());
                prop_assert_eq!(length as usize, frame.len() - 4);
                prop_assert_eq!(Request::read(frame[4], &frame[5..]).unwrap(), request);
            }
            for reply in replies(&data, &text) {
                let frame = reply.to_frame();
                prop_assert_eq!(Reply::read(frame[4], &frame[5..]).unwrap(), reply);
            }
        }

        #[test]
        fn any_bytes_are_understood_or_refused(kind in 0_u8..32, payload in vec(any::<u8>(), 0..300)) {
            // What is understood is written the same way again.
            if let Ok(request) = Request::read(kind, &payload) && !is_of_another_version(kind, &payload) {
                prop_assert_eq!(&request.to_frame()[5..], &payload[..]);
            }
            if let Ok(reply) = Reply::read(kind, &payload) && !is_of_another_version(kind, &payload) {
                prop_assert_eq!(&reply.to_frame()[5..], &payload[..]);
            }
        }

        #[test]
        fn a_frame_that_is_cut_off_or_too_long_is_refused(data in vec(any::<u8>(), 1..50), cut in 0_usize..40) {
            for request in [requests(&data)[0], requests(&data)[1], requests(&data)[4]] {
                let frame = request.to_frame();
                let payload = &frame[5..];
                let shorter = &payload[..cut.min(payload.len() - 1)];
                prop_assert!(Request::read(frame[4], shorter).is_err());
                let longer = [payload, &data].concat();
                prop_assert!(Request::read(frame[4], &longer).is_err());
            }
        }
    }

    fn is_of_another_version(kind: u8, payload: &[u8]) -> bool {
        matches!(kind, 1 | 16) && payload.get(8..10) != Some(&VERSION.to_le_bytes())
    }

    #[test]
    fn another_service_is_told_from_a_device() {
        let error = Reply::read(16, b"HTTP/1.1 400 Bad Request").unwrap_err();
        assert!(
            error.to_string().contains("no device of Rookery"),
            "{error}"
        );
    }

    #[test]
    fn the_version_is_read_whatever_follows() {
        let mut frame = requests(b"")[0].to_frame();
        frame[5 + 8] = 2;
        frame.push(77);
        let request = Request::read(1, &frame[5..]).unwrap();
        assert!(matches!(request, Request::Hello { version: 2, .. }));
    }
}
