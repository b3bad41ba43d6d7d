package broker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// identity is what clients know a broker by, and so what a restart keeps.
type identity struct {
	ClusterID string `json:"clusterId"`
	Port      int    `json:"port"`
}

// readIdentity returns the zero identity for a new directory.
func readIdentity(dir string) (id identity, err error) {
	text, err := os.ReadFile(identityFile(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return id, nil
	}
	if err != nil {
		return id, fmt.Errorf("broker: %w", err)
	}
	if err := json.Unmarshal(text, &id); err != nil {
		return id, fmt.Errorf("broker: read %s: %w", identityFile(dir), err)
	}
	return id, nil
}

// write replaces the file in one step: a crash leaves the old one or the new one.
func (id identity) write(dir string) error {
	text, err := json.Marshal(id)
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	tmp := identityFile(dir) + ".tmp"
	if err := os.WriteFile(tmp, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	if err := os.Rename(tmp, identityFile(dir)); err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	return nil
}

func identityFile(dir string) string { return filepath.Join(dir, "broker.json") }
