# docker build -t matchbound . && docker run --rm -v "$PWD:/data" matchbound evaluate scores.csv --threshold 0.5
FROM python:3.12-slim AS build
COPY . /source
RUN python -m pip wheel --quiet --no-deps --wheel-dir /dist /source

FROM python:3.12-slim
COPY --from=build /dist /dist
RUN python -m pip install --quiet --no-cache-dir "$(ls /dist/*.whl)[report,remote]" && rm -r /dist \
    && useradd --create-home matchbound
USER matchbound
# Kernels are compiled now; on a processor of another kind they are compiled again at first use.
ENV NUMBA_CACHE_DIR=/home/matchbound/kernels
RUN matchbound warm
WORKDIR /data
ENTRYPOINT ["matchbound"]
CMD ["--help"]
