package settings

import (
	"regexp"
	"strings"
)

// standards are words of Kubernetes for what a name is, which say nothing to who wrote it.
var standards = regexp.MustCompile(`^a (lowercase RFC 1123 (label|subdomain)|valid label) `)

// Misnamed is what is wrong with a name or a value, as Kubernetes' validation has it: the first
// thing, without the standard's name, examples and regular expressions. It wants one at least.
func Misnamed(wrong []string) string {
	text, _, _ := strings.Cut(wrong[0], " (e.g. ")
	return standards.ReplaceAllString(text, "it ")
}
