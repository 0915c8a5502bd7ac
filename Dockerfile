# An image of the binary, CA certificates and licences, nothing else. State lives in the volume /data:
#   docker run --rm -v tsimport:/data -v "$PWD:/in:ro" IMAGE load '/in/*.csv' --table T --pk id
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=auto -ldflags '-s -w -buildid=' -o /out/tsimport ./cmd/tsimport \
    && mkdir -p /out/data/tmp

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /src/LICENSE /src/THIRD_PARTY_NOTICES /
COPY --from=build /out/tsimport /usr/bin/tsimport
COPY --from=build --chown=65532:65532 /out/data /data
ENV HOME=/data TMPDIR=/data/tmp
USER 65532:65532
WORKDIR /data
VOLUME /data
ENTRYPOINT ["/usr/bin/tsimport"]
