# The processor and submit of the sample context: two static programs and the certificates of public authorities.
# An application of its own needs the same file with its own packages under cmd.

FROM golang:1.26.8-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags=-s -o /out/ ./cmd/processor ./cmd/submit

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/processor /out/submit /usr/local/bin/
# Nobody in particular, by number: there is no file of users.
USER 65532:65532
# Who runs the container decides by its network who may ask.
ENV WRIT_HTTP_ADDR=0.0.0.0:9464
EXPOSE 9464
HEALTHCHECK --interval=10s --timeout=6s --start-period=30s CMD ["/usr/local/bin/processor", "ready"]
ENTRYPOINT ["/usr/local/bin/processor"]
CMD ["serve"]
