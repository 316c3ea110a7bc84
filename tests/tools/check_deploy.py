#!/usr/bin/env python3
"""Compares what is under deploy/ with the programs, so that neither changes without the other.

Command lines and variables are compared with the programs' --help, addresses with a coordinator that is started for it,
names of metrics and times with the source. Needs PyYAML and kubernetes-validate.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import kubernetes_validate
import yaml

from command_lines import Command

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
CONTAINERFILE = DEPLOY / "containers/Containerfile"
KUBERNETES = DEPLOY / "kubernetes"
# The version whose schema manifests are held to.
KUBERNETES_VERSION = "1.33"
PROGRAMS = ("coordinator", "worker", "trainer")
# Those of which guides have command lines: the lab has no image.
GUIDED = (*PROGRAMS, "lab")
SETTING = re.compile(r"ROOKERY_[A-Z0-9_]+")
SIZES = {"g": 1 << 30, "m": 1 << 20, "GiB": 1 << 30, "MiB": 1 << 20, "GB": 10**9, "MB": 10**6}
# With variables, or what runs it elsewhere, before it.
COMMAND_LINE = re.compile(r"(?:\w+=\S* )*(?:\$\w+ |.* exec .* )?(?:\S*/)?rookery-(coordinator|worker|trainer|lab) (.*)")
# A program, where it is installed, and its arguments.
UNIT_COMMAND = re.compile(r"^ExecStart=(\S*/rookery-(\w+)) (.*)$", re.MULTILINE)
METRIC = re.compile(r"\brookery_[a-z0-9_]+")

complaints = []


def complain(where, what):
    shown = where.relative_to(ROOT) if isinstance(where, Path) else where
    complaints.append(f"{shown}: {what}")


# Files


class Strict(yaml.SafeLoader):
    """YAML in which no key stands twice in a mapping."""

    def construct_mapping(self, node, deep=False):
        names = [key.value for key, _ in node.value if key.value != "<<"]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise yaml.constructor.ConstructorError(None, None, f"{twice} twice", node.start_mark)
        return super().construct_mapping(node, deep)


def read_yaml():
    """The documents of every YAML file."""
    read = {}
    for path in sorted([*DEPLOY.rglob("*.yaml"), *DEPLOY.rglob("*.yml")]):
        try:
            read[path] = [document for document in yaml.load_all(path.read_text(), Strict) if document]
        except yaml.YAMLError as error:
            complain(path, error)
    return read


def seconds(text):
    """A time as systemd and compose write it."""
    number, unit = re.fullmatch(r"(\d+)\s*(s|m|min|)", str(text)).groups()
    return int(number) * (60 if unit.startswith("m") else 1)


def constant(path, name):
    """The seconds of a constant in the source."""
    found = re.search(rf"const {name}: Duration = Duration::from_secs\((\d+)\)", (ROOT / path).read_text())
    assert found, f"{path} has no {name}"
    return int(found[1])


def image_program(image):
    """The program of one of our images."""
    name = str(image).rsplit("/", 1)[-1].partition(":")[0]
    return name.partition("-")[2] if name.startswith("rookery-") else None


def target_program(target):
    """The program of a target of the Containerfile: there are several images of the worker."""
    return re.sub("-(torch|gpu)$", "", target)


# Command lines and variables


class Commands:
    """What the programs know."""

    def __init__(self, folder):
        self.known = {name: Command([f"{folder}/rookery-{name}"]) for name in GUIDED}

    def check(self, where, program, arguments, variables):
        for complaint in self.known[program].complaints(arguments):
            complain(where, f"rookery-{program}: {complaint}")
        unknown = set(variables) - self.known[program].all_variables()
        for name in sorted(name for name in unknown if name.startswith("ROOKERY_")):
            complain(where, f"rookery-{program} knows no variable {name}")


class Images:
    """The stages of the Containerfile."""

    def __init__(self):
        text = re.sub(r"\\\n", " ", CONTAINERFILE.read_text())
        self.stages, self.arguments, stage = {}, set(), None
        for line in text.splitlines():
            word, _, rest = line.partition(" ")
            if word == "FROM":
                stage = rest.split(" AS ")[-1]
                self.stages[stage] = [("FROM", rest)]
            elif word == "ARG" and stage is None:
                self.arguments.add(rest.partition("=")[0])
            elif word.isupper() and stage:
                self.stages[stage].append((word, rest))

    def last(self, stage, instruction):
        """The last such instruction of a stage, as JSON or text."""
        texts = [rest for word, rest in self.stages[stage] if word == instruction]
        return json.loads(texts[-1]) if texts and texts[-1].startswith("[") else (texts or [""])[-1]

    def variables(self, stage):
        pairs = [pair for word, rest in self.stages[stage] if word == "ENV" for pair in rest.split()]
        return dict(pair.split("=", 1) for pair in pairs)

    def check(self, commands):
        packages = {re.search(r'name = "(.*)"', path.read_text())[1] for path in ROOT.glob("*/Cargo.toml")}
        rust = re.search(r'rust-version = "(.*)"', (ROOT / "Cargo.toml").read_text())[1]
        for stage, lines in self.stages.items():
            for word, rest in lines:
                if word == "COPY":
                    self.check_copy(rest.split())
                for package in re.findall(r" -p (\S+)", rest):
                    if package not in packages:
                        complain(CONTAINERFILE, f"there is no package {package}")
                for version in re.findall(r"/rust:([\d.]+)", rest):
                    if version != rust:
                        complain(CONTAINERFILE, f"Rust {version} is not Cargo.toml's {rust}")
            if (program := target_program(stage)) in PROGRAMS:
                commands.check(CONTAINERFILE, program, self.last(stage, "CMD"), self.variables(stage))
        for program in set(PROGRAMS) - set(self.stages):
            complain(CONTAINERFILE, f"there is no target {program}")

    def check_copy(self, words):
        options = [word for word in words if word.startswith("--")]
        sources = [word for word in words if not word.startswith("--")][:-1]
        for option in options:
            stage = option.partition("--from=")[2]
            if stage and stage not in self.stages:
                complain(CONTAINERFILE, f"COPY from {stage}, which is no stage")
        for source in [] if options else sources:
            if not (ROOT / source).exists():
                complain(CONTAINERFILE, f"COPY of {source}, which is not there")


def check_units(commands, folder):
    """The units of systemd: command lines, and what systemd itself says of them."""
    drain = constant("coordinator/src/commands/serve/shutdown.rs", "DRAIN")
    with tempfile.TemporaryDirectory() as scratch:
        for path in sorted((DEPLOY / "systemd").glob("*.service")):
            text = path.read_text()
            started = UNIT_COMMAND.findall(text)
            if len(started) != len(re.findall("^ExecStart=", text, re.MULTILINE)):
                complain(path, "starts something else than Rookery's programs")
            for installed, program, arguments in started:
                words = shlex.split(arguments)
                commands.check(path, program, words, SETTING.findall(text))
                if "serve" in words and seconds(re.search(r"TimeoutStopSec=(.*)", text)[1]) <= drain:
                    complain(path, f"the coordinator may take {drain} s to end")
                text = text.replace(installed, os.path.abspath(f"{folder}/rookery-{program}"))
            Path(scratch, path.name).write_text(text)
        for path in (DEPLOY / "systemd").glob("*.timer"):
            if not path.with_suffix(".service").exists():
                complain(path, "there is no service of its name")
            shutil.copy(path, scratch)
        if shutil.which("systemd-analyze"):
            units = [str(unit) for unit in Path(scratch).iterdir()]
            asked = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True)
            for said in asked.stderr.splitlines():
                if scratch in said or "rookery-" in said:
                    complain("deploy/systemd", said.replace(scratch + "/", ""))


def check_command_line_unit():
    """The shell variable of the guide that runs commands as the coordinator's unit does: as its user, in its folder, with its settings."""
    guide, unit = ROOT / "docs/run/services.md", DEPLOY / "systemd/rookery-coordinator.service"
    shared = ("User", "DynamicUser", "StateDirectory", "EnvironmentFile")
    wanted = {line for line in unit.read_text().splitlines() if line.partition("=")[0] in shared}
    words = re.search(r'^as_rookery="systemd-run (.*)"$', guide.read_text(), re.MULTILINE)[1].split()
    given = {value for flag, value in zip(words, words[1:]) if flag == "-p"}
    for line in sorted(wanted ^ given):
        complain(guide, f"as_rookery and {unit.name} differ in {line}")


# Compose


def merged(low, high):
    """What a service becomes that extends another."""
    if isinstance(low, dict) and isinstance(high, dict):
        return {key: merged(low.get(key), high.get(key)) for key in {**low, **high}}
    return low if high is None else high


def check_compose(documents, commands, images):
    drain = constant("coordinator/src/commands/serve/shutdown.rs", "DRAIN")
    built = {}
    for path in sorted((DEPLOY / "compose").glob("*.yaml")):
        for name, service in documents[path][0]["services"].items():
            where, base = f"deploy/compose/{path.name}, {name}", service.get("extends")
            if base:
                base_file = documents[path.parent / base["file"]][0]
                service = merged(base_file["services"][base["service"]], service)
            program = image_program(service.get("image", ""))
            if not program:
                continue
            variables = service.get("environment") or {}
            check_build(where, path, service, images, built)
            commands.check(where, program, service.get("command") or images.last(program, "CMD"), variables)
            notice = int(variables.get("ROOKERY_STOP_NOTICE", 0))
            if program == "coordinator" and seconds(service["stop_grace_period"]) <= notice + drain:
                complain(where, f"the coordinator may take {notice + drain} s to end")
            for port in service.get("ports", []):
                port = port.rpartition(":")[2]
                if program == "coordinator":
                    check_port(where, port, images)
                elif port != variables.get("ROOKERY_DEVICE_LISTEN", "").rpartition(":")[2]:
                    complain(where, f"port {port} is not that of the device")
            for source in [mount.partition(":")[0] for mount in service.get("volumes", [])]:
                if not source.startswith(".") and source not in documents[path][0]["volumes"]:
                    complain(where, f"the volume {source} is not listed")


def check_build(where, path, service, images, built):
    """What a service's image is built from; `built` has the targets of the images before it."""
    build, image = service["build"], service["image"]
    target, program = build["target"], image_program(image)
    if (path.parent / build["context"] / build["dockerfile"]).resolve() != CONTAINERFILE:
        complain(where, "is built from another Containerfile")
    if target_program(target) != program or target not in images.stages:
        complain(where, f"the image of {program} is built from the target {target}")
    if built.setdefault(image, target) != target:
        complain(where, f"{image} is built from the target {built[image]}, too")
    if any(device.startswith("/dev/dri") for device in service.get("devices", [])) and target != "worker-gpu":
        complain(where, f"the target {target} has no Vulkan for /dev/dri")
    for argument in set(build.get("args", {})) - images.arguments:
        complain(where, f"the Containerfile has no argument {argument}")


def coordinator_port(images):
    return images.variables("coordinator")["ROOKERY_LISTEN"].rpartition(":")[2]


def check_port(where, port, images):
    if str(port) != coordinator_port(images):
        complain(where, f"port {port} is not the coordinator's {coordinator_port(images)}")


def metrics_port():
    """Where a coordinator shows its metrics unless it is told otherwise."""
    source = (ROOT / "coordinator/src/server/scrape.rs").read_text()
    return re.search(r'const LISTEN: &str = "[\d.]+:(\d+)"', source)[1]


def check_proxies(documents, images):
    """Where proxies find the coordinator, and whether they let through what it takes."""
    check_port(CONTAINERFILE, images.last("coordinator", "EXPOSE"), images)
    largest = 1 << int(re.search(r"MAX_FILE_BYTES: u64 = 1 << (\d+)", (ROOT / "common/src/network/file/mod.rs").read_text())[1])
    services = documents[DEPLOY / "compose/replicated.yaml"][0]["services"]
    for path in [*DEPLOY.rglob("Caddyfile"), DEPLOY / "proxy/nginx.conf", KUBERNETES / "coordinator/ingress.yaml"]:
        text = path.read_text()
        for host, port, scraped in re.findall(r"(coordinator-\d+|127\.0\.0\.1):(\d+)(/metrics)?", text):
            if not scraped:
                check_port(path, port, images)
            elif port != metrics_port():
                complain(path, f"port {port} is not that of metrics, {metrics_port()}")
            if host.startswith("coordinator") and host not in services:
                complain(path, f"there is no {host}")
        size = re.search(r"(?:max_size|client_max_body_size|proxy-body-size:) (\d+)(\w+)", text)
        if int(size[1]) * SIZES[size[2]] < largest:
            complain(path, f"bodies of {largest} bytes, the largest networks, do not pass")


# Kubernetes


def check_kubernetes(documents, commands, images):
    for folder in sorted(KUBERNETES.iterdir()):
        kustomization = documents[folder / "kustomization.yaml"][0]
        listed = kustomization.get("resources", [])
        for path in set(folder.glob("*.yaml")) - {folder / "kustomization.yaml"}:
            if path.name not in listed:
                complain(path, "is not listed in kustomization.yaml")
        for name in [*listed, *kustomization.get("components", [])]:
            if not (folder / name).exists():
                complain(folder / "kustomization.yaml", f"there is no {name}")
        for path in [folder / name for name in listed if name.endswith(".yaml")]:
            for manifest in documents.get(path, []):
                check_manifest(path, manifest, kustomization, commands, images)
        for patch in kustomization.get("patches", []):
            for change in yaml.load(patch["patch"], Strict):
                if change["path"].endswith("/env/-"):
                    for program in ("worker", "trainer"):
                        commands.check(folder / "kustomization.yaml", program, [], [change["value"]["name"]])
        if shutil.which("kubectl") and kustomization["kind"] == "Kustomization":
            built = subprocess.run(["kubectl", "kustomize", str(folder)], capture_output=True, text=True)
            if built.returncode:
                complain(folder, built.stderr.strip())


def check_manifest(path, manifest, kustomization, commands, images):
    try:
        kubernetes_validate.validate(manifest, KUBERNETES_VERSION, strict=True)
    except kubernetes_validate.ValidationError as error:
        complain(path, f"{manifest['kind']}: {error.message}")
        return
    spec = manifest.get("spec", {})
    pod = spec.get("jobTemplate", {}).get("spec", spec).get("template")
    for container in [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]] if pod else []:
        check_container(path, pod, container, kustomization, commands, images)


def check_container(path, pod, container, kustomization, commands, images):
    program = image_program(container["image"])
    variables = {entry["name"]: entry.get("value") for entry in container.get("env", [])}
    for generator in kustomization.get("configMapGenerator", []):
        if {"configMapRef": {"name": generator["name"]}} in container["envFrom"]:
            variables.update(literal.split("=", 1) for literal in generator["literals"])
    commands.check(path, program, container["args"], variables)
    ports = {port["name"]: port["containerPort"] for port in container.get("ports", [])}
    scraped = pod["metadata"].get("annotations", {}).get("prometheus.io/port")
    if scraped and int(scraped) not in ports.values():
        complain(path, f"nothing listens at port {scraped}, which is to be scraped")
    if program == "trainer" and variables["ROOKERY_TRAINER_METRICS"].rpartition(":")[2] != str(ports["metrics"]):
        complain(path, "the trainer does not listen at its port")
    if program == "coordinator" and "serve" in container["args"]:
        check_port(path, ports["http"], images)
        check_coordinator_times(path, pod["spec"], int(variables["ROOKERY_STOP_NOTICE"]))


def check_coordinator_times(path, pod, notice):
    drain = constant("coordinator/src/commands/serve/shutdown.rs", "DRAIN")
    patience = constant("coordinator/src/commands/serve/mod.rs", "PATIENCE")
    if pod["terminationGracePeriodSeconds"] <= notice + drain:
        complain(path, f"the coordinator may take {notice + drain} s to end")
    probe = pod["containers"][0]["startupProbe"]
    if probe["periodSeconds"] * probe["failureThreshold"] <= patience:
        complain(path, f"the coordinator may wait {patience} s for its database")


# A coordinator that runs


def advice():
    """What the alerts tell an operator to do."""
    for path in sorted((DEPLOY / "prometheus").glob("*.rules.yml")):
        for group in yaml.safe_load(path.read_text())["groups"]:
            for rule in group["rules"]:
                yield path, " ".join(rule["annotations"].values())


def asked_paths():
    """Every path that something under deploy/ asks a coordinator for or tells an operator to open, and where."""
    for path in sorted(file for file in DEPLOY.rglob("*") if file.is_file()):
        text = path.read_text()
        for asked in re.findall(r"(?:httpGet: \{path: |health_uri |prometheus\.io/path: |GET )(/[^\s,]*)", text):
            yield path, asked
    for path, text in advice():
        for asked in re.findall(r"(?:^|\s)(/[a-z][\w/.]*)", text):
            yield path, asked


def check_routes(api):
    """The routes of the API that alerts, dashboards and proxies name, as patterns or as a beginning."""
    for path in [*DEPLOY.rglob("*.json"), *DEPLOY.rglob("*.yml")]:
        for patterns in re.findall(r'route=~\\?"([^"\\]+)', path.read_text()):
            for pattern in patterns.split("|"):
                if not any(re.fullmatch(pattern, route) for route in api["paths"]):
                    complain(path, f"no route is like {pattern}")
    nginx = DEPLOY / "proxy/nginx.conf"
    for beginning in re.findall(r"location (/api\S+)", nginx.read_text()):
        if not any(route.startswith(beginning) for route in api["paths"]):
            complain(nginx, f"no route begins with {beginning}")


def check_compression(api):
    """Whether proxies compress every answer of the API that gets smaller by it."""
    calls = (call for calls in api["paths"].values() for call in calls.values() if "responses" in call)
    kinds = {kind for call in calls for answer in call["responses"].values() for kind in answer.get("content", {})}
    assert {"application/json", "application/problem+json", "application/octet-stream"} <= kinds, kinds
    for path in [*DEPLOY.rglob("Caddyfile"), DEPLOY / "proxy/nginx.conf"]:
        words = set(re.split(r"[\s;*]+", path.read_text()))
        for kind in sorted(kinds - {"application/octet-stream", "text/event-stream"} - words):
            complain(path, f"{kind} is not compressed")


def check_paths(folder):
    """Whether a coordinator answers where it is asked, and the image's check finds it ready."""
    with tempfile.TemporaryDirectory() as data, open(f"{data}/log", "w+") as log:
        command = [f"{folder}/rookery-coordinator", "--data-dir", data, "serve", "--listen", "127.0.0.1:0", "--metrics-listen", "api"]
        server = subprocess.Popen(command, stderr=log)
        try:
            address = listening(server, Path(log.name))
            for path, asked in asked_paths():
                try:
                    urllib.request.urlopen(address + asked, timeout=30).close()
                except urllib.error.HTTPError as error:
                    complain(path, f"a coordinator answers {error.code} at {asked}")
            with urllib.request.urlopen(f"{address}/api/v1/openapi.json", timeout=30) as document:
                api = json.load(document)
            check_routes(api)
            check_compression(api)
            listens = {**os.environ, "ROOKERY_LISTEN": address.partition("//")[2]}
            if subprocess.run([DEPLOY / "containers/ready"], env=listens).returncode:
                complain(DEPLOY / "containers/ready", "does not find a ready coordinator")
        finally:
            server.kill()
            server.wait()


def listening(server, log):
    """The address at which the coordinator says that it listens."""
    while server.poll() is None:
        found = re.search(r"http://[\d.:]+", log.read_text())
        if found:
            return found[0]
        time.sleep(0.1)
    sys.exit(f"check-deploy: the coordinator ended: {log.read_text()}")


# What is watched


def check_metrics():
    sources = [*(ROOT / "coordinator/src").rglob("*.rs"), *(ROOT / "trainer/src").rglob("*.rs")]
    known = {name for path in sources for name in re.findall(r'"(rookery_[a-z0-9_]+)"', path.read_text())}
    known |= {name + part for name in known if name.endswith("_seconds") for part in ("_bucket", "_sum", "_count")}
    dashboards = sorted((DEPLOY / "grafana").glob("*.json"))
    for path in dashboards:
        json.loads(path.read_text())
    for path in [*dashboards, *sorted((DEPLOY / "prometheus").glob("*.yml"))]:
        for name in sorted(set(METRIC.findall(path.read_text())) - known):
            complain(path, f"there is no metric {name}")
    prometheus = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())
    for target in prometheus["scrape_configs"][0]["static_configs"][0]["targets"]:
        if target.rpartition(":")[2] != metrics_port():
            complain(DEPLOY / "prometheus/prometheus.yml", f"{target} is not at the port of metrics, {metrics_port()}")
    for name in prometheus["rule_files"]:
        if not (DEPLOY / "prometheus" / name).exists():
            complain(DEPLOY / "prometheus/prometheus.yml", f"there is no {name}")


# The guides


def check_guides(commands):
    """The command lines of the programs in fenced blocks and in what alerts advise, and the files that are named."""
    for path, text in advice():
        for line in re.findall(r"`([^`]+)`|(rookery-\w+ [a-z][a-z ]+)", text):
            if found := COMMAND_LINE.match("".join(line)):
                commands.check(path, found[1], found[2].split(), [])
    for path in [DEPLOY / "README.md", *DEPLOY.rglob("*.yml"), *DEPLOY.rglob("*.yaml"), *DEPLOY.rglob("*.toml")]:
        for named in re.findall(r"\bdocs/[\w/-]+\.md", path.read_text()):
            if not (ROOT / named).exists():
                complain(path, f"there is no {named}")
    guides = [path for path in sorted((ROOT / "docs").rglob("*.md")) if path.parent.name != "results"]
    for path in [ROOT / "README.md", DEPLOY / "README.md", *guides]:
        blocks = re.findall(r"^ *```(\w*)\n(.*?)^ *```$", path.read_text(), re.MULTILINE | re.DOTALL)
        for block in [block for kind, block in blocks if not kind]:
            for line in block.replace("\\\n", " ").splitlines():
                found = COMMAND_LINE.match(line.strip().partition(" #")[0])
                if found:
                    words = re.split(r" [|<>&]", " " + found[2])[0].replace("[", " ").replace("]", " ").split()
                    commands.check(path, found[1], words, [])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True, metavar="DIR", help="The folder of the programs.")
    folder = parser.parse_args().bin
    documents = read_yaml()
    if not complaints:
        commands, images = Commands(folder), Images()
        images.check(commands)
        check_units(commands, folder)
        check_command_line_unit()
        check_compose(documents, commands, images)
        check_proxies(documents, images)
        check_kubernetes(documents, commands, images)
        check_paths(folder)
        check_metrics()
        check_guides(commands)
    for complaint in complaints:
        print(f"check-deploy: {complaint}", file=sys.stderr)
    if not complaints:
        print(f"check-deploy: {len(documents)} YAML files, units, images, metrics and guides fit the programs")
    sys.exit(bool(complaints))


if __name__ == "__main__":
    main()
