package manifest

import (
	"regexp"
	"strconv"
)

// quantityForm is a number with a suffix or an exponent, as Kubernetes takes amounts.
var quantityForm = regexp.MustCompile(`^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE]([+-]?[0-9]{1,3})|[KMGTPE]i|[numkMGTPE])?$`)

// isQuantity reports whether a text is an amount: 2, 500m, 64Gi, 1e3.
func isQuantity(text string) bool {
	m := quantityForm.FindStringSubmatch(text)
	if m == nil || len(text) > 64 {
		return false
	}
	n, err := strconv.Atoi(m[1])
	return m[1] == "" || err == nil && n <= 30 && n >= -30
}
