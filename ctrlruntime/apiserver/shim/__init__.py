"""Programs that replace kube-apiserver and etcd, so that test harnesses which start them use the embedded server."""

from ctrlruntime.apiserver.shim.installation import install

__all__ = ["install"]
