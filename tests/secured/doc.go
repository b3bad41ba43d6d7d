// Package secured holds the test of a processor whose Kafka and Postgres let nobody in without TLS and a login, and
// allow nothing beyond what the scripts of deploy grant.
package secured
