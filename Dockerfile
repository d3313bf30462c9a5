# gcnii serve on a CPU: docs/howto/serve.md says how to run it; tests/serving/test_image.py runs its
# steps.
FROM python:3.11-slim
# What LightGBM links to, and python:slim lacks.
RUN apt-get update && apt-get install -y --no-install-recommends libgomp1 && rm -rf /var/lib/apt/lists/*
WORKDIR /build
COPY constraints.txt pyproject.toml README.md LICENSE ./
COPY src src
# torch first, from an index of builds for CPUs if one is given: the usual one has CUDA beside it.
ARG TORCH_INDEX
RUN python -m pip install --no-cache-dir -c constraints.txt torch ${TORCH_INDEX:+--index-url "$TORCH_INDEX"}
RUN python -m pip install --no-cache-dir -c constraints.txt ".[serve]"
WORKDIR /data
USER 10001
ENV HOME=/tmp
EXPOSE 8000
HEALTHCHECK CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/health')"]
ENTRYPOINT ["gcnii", "serve", "--host", "0.0.0.0", "--token-file", "/run/secrets/token"]
