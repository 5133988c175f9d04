# The command line: docker build -t evenhand . && docker run --rm -v "$PWD:/data" evenhand audit audit.toml
FROM python:3.12-slim@sha256:78387bc3881b8273120a12ebe6c1ab22b018ccc2c9adf565ae1ac9b536e184ea
WORKDIR /source
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY src ./src
RUN pip install --no-cache-dir -c constraints.txt ".[models,files]" && useradd --uid 1000 --create-home auditor
USER 1000
WORKDIR /data
ENTRYPOINT ["evenhand"]
CMD ["--help"]
