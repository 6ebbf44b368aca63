package share

import (
	"encoding/json"
	"fmt"
)

// Learned is Expected as the core uses it (place.Foresight): by what counts in a Memory,
// so that it says the same of equal nodes whenever it is asked. Requests without devices
// go where the fewest CPUs are left.
type Learned struct {
	memory  Memory
	outlook *Outlook
}

// Arrived counts a request.
func (s *Learned) Arrived(r *Request) (changed bool) {
	seen := Seen{CPU: r.CPU, Count: r.Count, Milli: r.Milli}
	if len(r.Models) > 0 {
		of, err := json.Marshal(r.Models)
		if err != nil {
			panic(fmt.Sprintf("share: models cannot be written: %v", err)) // numbers: cannot happen
		}
		seen.Of = string(of)
	}
	if !s.memory.Arrived(seen, 1) {
		return false
	}
	s.outlook = s.memory.Outlook(func(of string) (models []int) {
		if err := json.Unmarshal([]byte(of), &models); err != nil {
			panic(fmt.Sprintf("share: models cannot be read: %v", err)) // written above
		}
		return models
	})
	return true
}

// Rate is Outlook.Rate of a node with devices of one model.
func (s *Learned) Rate(n *Node, r *Request) (int64, int) {
	stock := Stock{CPU: n.CPU, Banks: []Bank{{Model: n.Model, Take: r.Milli, Left: n.Left}}}
	x, at := s.outlook.Rate(&stock, r.CPU, r.Count, r.Part())
	return x, at.Device
}
