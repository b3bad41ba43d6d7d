// Package archtest holds the tests that keep imports pointing one way.
package archtest
