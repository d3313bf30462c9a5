"""What several tests share: small graphs and cells, stand-ins, and the command line."""
