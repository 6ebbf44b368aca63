package slurmfmt

import "strings"

// stateCodes pairs long state and flag names with their short codes.
var stateCodes = []struct{ name, code string }{
	{"PENDING", "PD"},
	{"RUNNING", "R"},
	{"SUSPENDED", "S"},
	{"COMPLETED", "CD"},
	{"CANCELLED", "CA"},
	{"FAILED", "F"},
	{"TIMEOUT", "TO"},
	{"NODE_FAIL", "NF"},
	{"PREEMPTED", "PR"},
	{"BOOT_FAIL", "BF"},
	{"DEADLINE", "DL"},
	{"OUT_OF_MEMORY", "OOM"},
	{"CONFIGURING", "CF"},
	{"COMPLETING", "CG"},
	{"RESV_DEL_HOLD", "RD"},
	{"REQUEUE_FED", "RF"},
	{"REQUEUE_HOLD", "RH"},
	{"REQUEUED", "RQ"},
	{"RESIZING", "RS"},
	{"REVOKED", "RV"},
	{"SIGNALING", "SI"},
	{"SPECIAL_EXIT", "SE"},
	{"STAGE_OUT", "SO"},
	{"STOPPED", "ST"},
}

// StateCode returns the short code of a state or flag name, such as "PD".
func StateCode(name string) (string, bool) {
	for _, s := range stateCodes {
		if strings.EqualFold(s.name, name) {
			return s.code, true
		}
	}
	return "", false
}

// ParseState returns the long name for a long name or short code in any case.
func ParseState(s string) (string, error) {
	for _, c := range stateCodes {
		if strings.EqualFold(c.name, s) || strings.EqualFold(c.code, s) {
			return c.name, nil
		}
	}
	return "", textError(s, "is not a job state")
}
