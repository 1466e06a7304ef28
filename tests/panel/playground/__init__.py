"""The page Playground against a real gateway: instances here know the ports of both (INSTANCE_PORTS)."""
