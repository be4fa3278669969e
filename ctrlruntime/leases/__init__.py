"""What leader election and sharding share: the connection for Leases, and how each request is made."""
