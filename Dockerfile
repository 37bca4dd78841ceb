# Two stages: the first builds a virtual environment, the second holds it and git, and nothing that builds.
#   docker build -t issuewright .
#   docker run --env-file issuewright.env -v issuewright:/data -p 127.0.0.1:8080:8080 issuewright
ARG BASE=python:3.13-slim-bookworm

FROM ${BASE} AS build
WORKDIR /source
COPY . .
RUN python3 -m venv /opt/issuewright \
 && /opt/issuewright/bin/pip install --no-cache-dir -c constraints.txt ".[postgres]"

FROM ${BASE}
RUN apt-get update \
 && apt-get install -y --no-install-recommends bubblewrap ca-certificates git tini \
 && rm -rf /var/lib/apt/lists/* \
 && install -d -o 10001 -g 10001 -m 0700 /data
COPY --from=build /opt/issuewright /opt/issuewright
ENV PATH=/opt/issuewright/bin:$PATH \
    HOME=/data \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    ISSUEWRIGHT_STATE_DIR=/data/state \
    ISSUEWRIGHT_HOST=0.0.0.0
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s \
  CMD ["python3", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ.get('ISSUEWRIGHT_PORT', '8080') + '/healthz', timeout=4)"]
# In a plain container commands are shut in by Landlock; where the container may make namespaces, by bubblewrap.
ENTRYPOINT ["tini", "--", "issuewright"]
CMD ["serve"]
