"""What tests of a server send."""

import io

import pyarrow as pa


def streams(*tables, compression=None):
    """Arrow IPC streams, one after the other."""
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    for table in tables:
        with pa.ipc.new_stream(sink, table.schema, options=options) as stream:
            stream.write_table(table)
    return sink.getvalue()
