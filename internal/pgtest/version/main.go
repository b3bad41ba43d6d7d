// Command version prints which PostgreSQL the tests run on.
package main

import (
	"fmt"
	"os"

	"github.com/seed54173720/writ/internal/pgtest"
)

func main() {
	text, err := pgtest.Version()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(text)
}
