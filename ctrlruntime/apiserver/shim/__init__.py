"""Stand-ins for kube-apiserver and etcd, so that harnesses which start these programs run on the embedded server."""

from ctrlruntime.apiserver.shim.installation import install

__all__ = ["install"]
