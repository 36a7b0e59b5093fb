"""Lints the Helm chart and installs it, with the library of Helm itself, into a server that answers like Kubernetes and
keeps what it is sent. So the manifests are those that a cluster would get; each is held against the schemas of Kubernetes.

Usage: chart.py LIBRARY CHART   (the Python that runs it has kubernetes-validate)
"""

import ctypes
import json
import shutil
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import kubernetes_validate
import yaml

KUBERNETES = ["1.27", "1.34"]
RESOURCES = {
    "v1": [("ConfigMap", "configmaps"), ("PersistentVolumeClaim", "persistentvolumeclaims"), ("Secret", "secrets"), ("Service", "services")],
    "apps/v1": [("Deployment", "deployments")],
    "networking.k8s.io/v1": [("Ingress", "ingresses")],
    "policy/v1": [("PodDisruptionBudget", "poddisruptionbudgets")],
}
# What each installation sets, and the kinds that it must bring.
CASES = {
    "as it comes": (
        {"existingSecret": "okt"},
        ["ConfigMap", "Deployment", "Deployment", "PersistentVolumeClaim", "PodDisruptionBudget", "Service"],
    ),
    "a bucket, an ingress, one process each": (
        {
            "existingSecret": "okt",
            "api": {"replicas": 1},
            "persistence": {"enabled": False},
            "config": '[providers.storage]\nbackend = "s3"\n[providers.storage.s3]\nbucket = "okt"\n',
            "ingress": {"enabled": True, "className": "nginx", "tlsSecret": "tls", "annotations": {"a.example.org/b": "0"}},
            "imagePullSecrets": [{"name": "pull"}],
            "nodeSelector": {"disk": "fast"},
            "tolerations": [{"key": "okt", "operator": "Exists"}],
            "metrics": {"annotations": False},
        },
        ["ConfigMap", "Deployment", "Deployment", "Ingress", "Service"],
    ),
    "a volume that exists": (
        {"existingSecret": "okt", "persistence": {"existingClaim": "files"}},
        ["ConfigMap", "Deployment", "Deployment", "PodDisruptionBudget", "Service"],
    ),
}
# What the schema of the values, or the chart, must refuse, and what the message has to name.
REFUSED = [
    ({}, "existingSecret"),
    ({"existingSecret": "okt", "api": {"replica": 2}}, "replica"),
    ({"existingSecret": "okt", "trustedProxies": ["10.0.0.1"]}, "trustedProxies"),
    ({"existingSecret": "okt", "terminationGracePeriodSeconds": 5}, "terminationGracePeriodSeconds"),
]


class Cluster(BaseHTTPRequestHandler):
    """As much of the API of Kubernetes as an installation asks for."""

    kept = []

    def answer(self, status, body, kind="application/json"):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        path = self.path.split("?")[0].strip("/")
        group = path.removeprefix("apis/").removeprefix("api/")
        if path == "version":
            self.answer(200, {"major": "1", "minor": "34", "gitVersion": "v1.34.0"})
        elif path == "api":
            self.answer(200, {"kind": "APIVersions", "versions": ["v1"]})
        elif path == "apis":
            versions = [{"groupVersion": name, "version": "v1"} for name in RESOURCES if name != "v1"]
            groups = [
                {"name": version["groupVersion"].split("/")[0], "versions": [version], "preferredVersion": version}
                for version in versions
            ]
            self.answer(200, {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
        elif group in RESOURCES:
            verbs = ["create", "get", "list", "patch", "update"]
            resources = [{"name": plural, "namespaced": True, "kind": kind, "verbs": verbs} for kind, plural in RESOURCES[group]]
            self.answer(200, {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group, "resources": resources})
        else:
            self.answer(404, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404})

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        # What Helm remembers of the release comes as protobuf; manifests are JSON.
        if self.headers["content-type"] == "application/json":
            self.kept.append(json.loads(body))
        self.answer(201, body, self.headers["content-type"])

    do_PUT = do_POST

    def log_message(self, *arguments):
        pass


class Helm:
    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.helm_sdkpy_last_error.restype = ctypes.c_char_p

    def configure(self, kubeconfig):
        handle = ctypes.c_ulonglong()
        code = self.library.helm_sdkpy_config_create(b"default", kubeconfig, None, b"{}", ctypes.byref(handle))
        self.ok(code)
        return handle

    def ok(self, code):
        if code:
            raise RuntimeError(self.library.helm_sdkpy_last_error().decode())

    def lint(self, handle, chart):
        result = ctypes.c_char_p()
        self.ok(self.library.helm_sdkpy_lint(handle, chart.encode(), ctypes.byref(result)))
        return json.loads(result.value)

    def install(self, handle, name, chart, values):
        result = ctypes.c_char_p()
        options = json.dumps({"wait": False, "timeout_seconds": 20, "disable_openapi_validation": True, "server_side_apply": "false"})
        self.ok(
            self.library.helm_sdkpy_install(
                handle, name.encode(), chart.encode(), json.dumps(values).encode(), b"", options.encode(), ctypes.byref(result)
            )
        )


def lint(helm, handle, chart):
    """With the one value that has no default, as a copy: the library takes no values to lint."""
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copytree(chart, folder + "/okt")
        with open(copy + "/values.yaml", encoding="utf-8") as file:
            values = file.read()
        with open(copy + "/values.yaml", "w", encoding="utf-8") as file:
            file.write(values.replace('existingSecret: ""', "existingSecret: okt"))
        found = helm.lint(handle, copy)
    # 1 is information (there is no icon), 2 a warning, 3 an error.
    if found["Errors"] or any(message["Severity"] > 1 for message in found["Messages"]):
        sys.exit(f"chart: helm lint: {found}")


def check(case, manifests, kinds):
    if sorted(manifest["kind"] for manifest in manifests) != kinds:
        sys.exit(f"chart: {case}: {sorted(manifest['kind'] for manifest in manifests)} instead of {kinds}")
    for manifest in manifests:
        for version in KUBERNETES:
            try:
                kubernetes_validate.validate(manifest, version, strict=True)
            except kubernetes_validate.ValidationError as wrong:
                sys.exit(f"chart: {case}: {manifest['kind']} for Kubernetes {version}: {wrong.message} at {list(wrong.path)}")


def main():
    library, chart = sys.argv[1:]
    server = ThreadingHTTPServer(("127.0.0.1", 0), Cluster)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    cluster = {"cluster": {"server": f"http://127.0.0.1:{server.server_port}"}, "name": "c"}
    kubeconfig = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [cluster],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {}}],
    }
    helm = Helm(library)
    handle = helm.configure(yaml.safe_dump(kubeconfig).encode())
    lint(helm, handle, chart)
    number = 0
    for number, (case, (values, kinds)) in enumerate(CASES.items()):
        Cluster.kept.clear()
        helm.install(handle, f"r{number}", chart, values)
        check(case, Cluster.kept, kinds)
    for values, named in REFUSED:
        number += 1
        try:
            helm.install(handle, f"r{number}", chart, values)
        except RuntimeError as refused:
            if named not in str(refused):
                sys.exit(f"chart: {values} was refused without naming {named}: {refused}")
        else:
            sys.exit(f"chart: {values} was accepted")
    print(f"chart: helm lint is content, {len(CASES)} installations fit Kubernetes {' and '.join(KUBERNETES)}")


main()
