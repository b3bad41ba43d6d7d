package config

import "slices"

// suggest returns ": did you mean …?" with the name that is nearest to an unknown one, or nothing where none is near.
func suggest(unknown string, known []string) string {
	slices.Sort(known)
	best, least := "", len(unknown)/3+2
	for _, name := range known {
		if d := distance(unknown, name); d < least {
			best, least = name, d
		}
	}
	if best == "" {
		return ": see docs/configuration.md, or --help"
	}
	return ": did you mean " + best + "?"
}

// distance is the number of bytes to insert, delete or replace to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
