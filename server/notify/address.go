package notify

import (
	"strings"

	"github.com/coxswain-sched/coxswain/model/job"
)

// maxRecipients bounds --mail-user of one job.
const maxRecipients = 16

// mailRecipients are the addresses of --mail-user, separated by commas, or the
// submitter's; bad are parts that are no plain addresses.
func mailRecipients(s *job.Spec, domain string) (to, bad []string) {
	list := s.Mail.To
	if strings.TrimSpace(list) == "" {
		list = s.Owner.User
	}
	for part := range strings.SplitSeq(list, ",") {
		part = strings.Trim(part, " \t")
		switch {
		case part == "":
			continue
		case !isPlainAddress(part) || len(to) == maxRecipients:
			bad = append(bad, oneLine(part, 80))
			continue
		}
		if domain != "" && !strings.Contains(part, "@") {
			part += "@" + domain
		}
		to = append(to, part)
	}
	return to, bad
}

// isPlainAddress reports whether an address is NAME or NAME@HOST of harmless characters. The
// first is a letter or a digit: a mail program takes -x for an option, |x for a
// program and /x or +x for a file.
func isPlainAddress(address string) bool {
	name, host, hasHost := strings.Cut(address, "@")
	switch {
	case len(address) > 254 || name == "" || !isAlphanumeric(name[0]) && name[0] != '_' || hasHost && host == "":
		return false
	case hasHost && !isAlphanumeric(host[0]):
		return false
	}
	for i := range len(name) {
		if !isAlphanumeric(name[i]) && !strings.ContainsRune("._%+~=-", rune(name[i])) {
			return false
		}
	}
	for i := range len(host) {
		if !isAlphanumeric(host[i]) && host[i] != '.' && host[i] != '-' {
			return false
		}
	}
	return true
}

func isAlphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
