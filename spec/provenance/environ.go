package provenance

import (
	"path"
	"strings"
)

// defaultDrop are the patterns of variables that mostly hold secrets.
var defaultDrop = []string{
	"*TOKEN", "*TOKENS", "*_TOKEN_*", "*SECRET*", "*PASSWORD*", "*PASSWD*", "*PASSPHRASE*", "*CREDENTIAL*", "*PRIVATE_KEY*",
	"*API_KEY*", "*APIKEY*", "*ACCESS_KEY*", "*_AUTH", "*_PAT", "AWS_*KEY*", "AWS_SESSION*", "AZURE_*KEY*", "GOOGLE_APPLICATION_CREDENTIALS",
	"SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "KUBECONFIG", "DBUS_SESSION_BUS_ADDRESS", "*_DSN", "DATABASE_URL",
}

// DefaultDrop returns the patterns of variables that are dropped where a policy
// filters and names none: those that mostly hold secrets.
func DefaultDrop() []string { return append([]string(nil), defaultDrop...) }

// EnvironmentPolicy says which variables of the submission go along with the job.
// The zero value keeps all, as sbatch does. Patterns have * for any characters and
// are compared without regard to case.
type EnvironmentPolicy struct {
	Filter bool     // apply it
	Keep   []string // kept even if Drop names them
	Drop   []string // dropped; nil: DefaultDrop
}

// Apply returns the variables that go along, and the names of the others. The given
// slice is not written.
func (p EnvironmentPolicy) Apply(environ []string) (kept, dropped []string) {
	if !p.Filter {
		return environ, nil
	}
	drop := p.Drop
	if drop == nil {
		drop = defaultDrop
	}
	for _, e := range environ {
		name, _, _ := strings.Cut(e, "=")
		if matchesAny(drop, name) && !matchesAny(p.Keep, name) {
			dropped = append(dropped, name)
			continue
		}
		kept = append(kept, e)
	}
	return kept, dropped
}

func matchesAny(patterns []string, name string) bool {
	name = strings.ReplaceAll(strings.ToUpper(name), "/", "_")
	for _, p := range patterns {
		if ok, err := path.Match(strings.ToUpper(p), name); err == nil && ok {
			return true
		}
	}
	return false
}
