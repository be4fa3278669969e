"""Leader election with a Lease in the cluster."""

from ctrlruntime.leaderelection.elector import Elector
from ctrlruntime.leaderelection.lease import LeaseLock
from ctrlruntime.leaderelection.lock import LeaseRecord, Lock
from ctrlruntime.leaderelection.options import LeaderElection

__all__ = ["Elector", "LeaderElection", "LeaseLock", "LeaseRecord", "Lock"]
