"""From the tables of nodes and edges, whatever they were read from, to a Graph."""
