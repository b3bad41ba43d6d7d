// Package kerneltest tests what is registered with the kernel, on the real kernel and without Kafka. An application
// says given, when and then with [For]; a [Runner] takes batches of commands the way that an engine does, for tests of
// stores and of the kernel itself.
package kerneltest
