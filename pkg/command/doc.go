// Package command holds the nouns of Writ that travel: the command and its
// builder, the identities and their digests, outcomes, codes and errors, the
// reply, the event and the dead letter, and the one piece of code that admits a
// command.
//
// A command comes into being in two ways only, [Builder.Build] and [Read]; both
// enforce the same rules, and from then on it is immutable. Everything that is
// frozen on the wire or in the journal (addresses, digests, the canonical form,
// the records) is described for other languages in docs/wire.md, with vectors
// under testdata.
//
// The package imports neither a Kafka client nor a database driver: [Record] is
// all it knows of Kafka.
package command
