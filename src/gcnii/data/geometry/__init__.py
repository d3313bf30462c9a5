"""Planes in which Geom-GCN finds neighbours."""
