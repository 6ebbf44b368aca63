package intake

import (
	"strings"

	"github.com/coxswain-sched/coxswain/api"
)

// Detect says which form a text has, api.FormSbatch or api.FormNative. A name that ends in
// .yaml, .yml or .json decides; otherwise the content does.
func Detect(name string, data []byte) string {
	lower := strings.ToLower(name)
	for _, end := range []string{".yaml", ".yml", ".json"} {
		if strings.HasSuffix(lower, end) {
			return api.FormNative
		}
	}
	if looksNative(string(data)) {
		return api.FormNative
	}
	return api.FormSbatch
}

// looksNative reports whether a text is YAML or JSON: its first line that is neither empty nor
// a comment is a key or a brace, and not a command.
func looksNative(text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		switch trimmed := strings.TrimSpace(line); {
		case strings.HasPrefix(line, "#!"), strings.HasPrefix(line, "#SBATCH"):
			return false
		case trimmed == "", strings.HasPrefix(trimmed, "#"), trimmed == "---":
			continue
		default:
			key, _, ok := strings.Cut(trimmed, ":")
			return strings.HasPrefix(trimmed, "{") || ok && !strings.ContainsAny(key, " \t=$()|;&\"'/")
		}
	}
	return false
}
