package localrun

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// roomFile keeps the room in the state directory, so that jobs which another cox
// run left there find their nodes again.
const roomFile = "room.json"

// keepRoom widens a room by the one that an earlier run had in the directory, and
// writes the result there.
func keepRoom(dir string, r *Room) error {
	name := filepath.Join(dir, roomFile)
	b, err := os.ReadFile(name)
	if err == nil {
		var before Room
		if err := json.Unmarshal(b, &before); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		r.widenTo(&before)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if b, err = json.Marshal(r); err != nil {
		return err
	}
	return os.WriteFile(name, b, 0o600)
}

// widenTo makes every node at least what it was before. Nodes keep their place, and
// with it their address; a name that a node had stays.
func (r *Room) widenTo(before *Room) {
	for i, old := range before.Nodes {
		if i == len(r.Nodes) {
			r.Nodes, r.Names = append(r.Nodes, old), append(r.Names, before.Names[i])
			continue
		}
		n := &r.Nodes[i]
		n.Capacity = maxVector(n.Capacity, old.Capacity)
		n.Features = union(slices.Clone(n.Features), old.Features)
		slices.Sort(n.Features)
		n.Parts = union(slices.Clone(n.Parts), old.Parts)
		if len(old.Devices) > len(n.Devices) {
			n.Devices = old.Devices
		}
		if before.Names[i] != "" {
			r.Names[i] = before.Names[i]
		}
	}
	r.Declared = 0
	for _, n := range r.Nodes {
		for _, d := range n.Devices {
			if d.Declared {
				r.Declared++
			}
		}
	}
}
