"""The neighbourhoods of Geom-GCN, published or computed by isomap."""
