"""What tests of a server send."""

import io

import pyarrow as pa


def streams(*tables):
    """Arrow IPC streams, one after the other."""
    sink = io.BytesIO()
    for table in tables:
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
    return sink.getvalue()
