// Package tests holds the tests that take the whole system and break it: processors, brokers and
// databases that are killed in mid-work, copies of a request that race each other, offsets that must
// not overtake answers. What must hold afterwards is judged by package model; docs/proof.md says how
// the parts fit together.
package tests
