"""The embedded API server: for tests, demos and local development. Production is a cluster."""

from ctrlruntime.apiserver.containers import Command, Containers
from ctrlruntime.apiserver.faults import Faults
from ctrlruntime.apiserver.options import Options, TokenUser
from ctrlruntime.apiserver.server import APIServer
from ctrlruntime.apiserver.thread import ServerThread

__all__ = ["APIServer", "Command", "Containers", "Faults", "Options", "ServerThread", "TokenUser"]
