package api

import "time"

// Secrets are the caller's own. Values are never sent back.
type Secrets struct {
	Secrets []Secret `json:"secrets"`
}

// Secret is what is told of a secret.
type Secret struct {
	Name    string    `json:"name"`
	Bytes   int64     `json:"bytes"`
	Changed time.Time `json:"changed"`
}

// SetSecret keeps a value.
type SetSecret struct {
	Value []byte `json:"value" doc:"in base64"`
}
