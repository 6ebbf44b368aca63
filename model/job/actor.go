package job

// Actor is who asked for a change, as the audit keeps it. The zero value is the
// control plane itself.
type Actor struct {
	Name string `json:"name"`
	UID  uint32 `json:"uid"`
	From string `json:"from,omitempty"` // "socket", "tcp 127.0.0.1:5123", "cox run"
}

// IsZero reports whether the control plane itself acted.
func (a Actor) IsZero() bool { return a == Actor{} }
