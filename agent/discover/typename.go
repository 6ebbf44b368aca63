package discover

import (
	"regexp"
	"strings"
	"unicode"
)

var (
	// A model name that stands alone: h100, a6000, mi300x, l40s, gb200, t4.
	modelWord = regexp.MustCompile(`^(?:gb|gh|gv|mi|[a-z])\d+[a-z]*$`)
	// What names a board's form or memory, not its model.
	formWord = regexp.MustCompile(`^(?:sxm\d*|pcie|oam|nvl|hbm\d*e?|\d+gb|\d+g|vf|smx\d*)$`)
	// Words that say who made it or for whom.
	soundWord = map[string]bool{
		"nvidia": true, "amd": true, "advanced": true, "micro": true, "devices": true, "inc": true, "ati": true,
		"tesla": true, "quadro": true, "geforce": true, "grid": true, "instinct": true, "radeon": true, "graphics": true,
		"laptop": true, "gpu": true, "generation": true, "edition": true, "series": true, "with": true, "max": true, "q": true,
		"design": true, "device": true, "corporation": true, "mobile": true,
	}
	// Families whose models are numbers.
	familyWord = map[string]bool{"rtx": true, "gtx": true, "rx": true, "titan": true, "pro": true, "vii": true, "gt": true}
	// What follows a number and belongs to it.
	suffixWord = map[string]bool{"ti": true, "super": true, "xt": true, "xtx": true, "gre": true, "ada": true, "d": true}
)

// TypeName makes the short name by which people ask for a GPU from the
// vendor's product name: "NVIDIA A100-SXM4-40GB" gives "a100", "NVIDIA
// GeForce RTX 4090" gives "rtx4090", "AMD Instinct MI300X OAM" gives
// "mi300x". A name that fits no pattern gives its words run together; an
// empty name gives "gpu". The result has only lower-case letters and digits.
func TypeName(product string) string {
	words := strings.FieldsFunc(strings.ToLower(product), func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	var kept []string
	for _, w := range words {
		if !soundWord[w] && !formWord.MatchString(w) {
			kept = append(kept, w)
		}
	}
	for i, w := range kept {
		if modelWord.MatchString(w) {
			if i+1 < len(kept) && kept[i+1] == "ada" {
				return w + "ada"
			}
			return w
		}
	}
	if name := familyName(kept); name != "" {
		return name
	}
	if len(kept) == 0 {
		return "gpu"
	}
	return strings.Join(kept, "")
}

// familyName joins a family, its number and what belongs to the number:
// rtx 3080 ti, rtx pro 6000, titan v.
func familyName(words []string) string {
	var name strings.Builder
	numbered := false
	for _, w := range words {
		switch {
		case !numbered && familyWord[w]:
			name.WriteString(w)
		case name.Len() > 0 && !numbered && (w[0] >= '0' && w[0] <= '9' || len(w) == 1):
			name.WriteString(w)
			numbered = true
		case numbered && suffixWord[w]:
			name.WriteString(w)
		}
	}
	return name.String()
}
