package slurmfmt

import (
	"strings"
	"time"
)

// SignalForms lists the form of --signal, for messages.
const SignalForms = "[{R|B}:]signal[@seconds], for example B:USR1@120"

// Signal is the value of --signal: what is sent how long before the time limit.
type Signal struct {
	Number      int
	Before      time.Duration // 60 s where nothing is said
	BatchOnly   bool          // B: to the batch shell alone
	Reservation bool          // R: may overlap with a reservation that has MaxStartDelay
}

// signals are the names that --signal and scancel know, with their numbers on
// Linux (x86-64 and arm64).
var signals = map[string]int{
	"HUP": 1, "INT": 2, "QUIT": 3, "ABRT": 6, "KILL": 9, "USR1": 10, "SEGV": 11, "USR2": 12, "PIPE": 13,
	"ALRM": 14, "TERM": 15, "CHLD": 17, "CONT": 18, "STOP": 19, "TSTP": 20, "TTIN": 21, "TTOU": 22,
	"URG": 23, "XCPU": 24, "XFSZ": 25, "VTALRM": 26, "PROF": 27, "WINCH": 28, "IO": 29, "PWR": 30,
}

// ParseSignalName reads "USR1", "SIGUSR1", "usr1" or "10".
func ParseSignalName(s string) (int, error) {
	if n, ok := parseDigits(s); ok {
		if n < 1 || n > 64 {
			return 0, textError(s, "is not a signal number (1 to 64)")
		}
		return int(n), nil
	}
	if n, ok := signals[strings.TrimPrefix(strings.ToUpper(s), "SIG")]; ok {
		return n, nil
	}
	return 0, textError(s, "is not a signal (forms: USR1, SIGUSR1, 10)")
}

// ParseSignal reads the value of --signal.
func ParseSignal(s string) (Signal, error) {
	sig := Signal{Before: time.Minute}
	rest := s
	if flags, after, ok := strings.Cut(s, ":"); ok {
		rest = after
		for _, f := range strings.ToUpper(flags) {
			switch f {
			case 'B':
				sig.BatchOnly = true
			case 'R':
				sig.Reservation = true
			default:
				return sig, wrongPart(s, 0, len(flags), "is not a signal request (form: %s)", SignalForms)
			}
		}
	}
	name, seconds, timed := strings.Cut(rest, "@")
	at := len(s) - len(rest)
	n, err := ParseSignalName(name)
	if err != nil {
		return sig, wrongPart(s, at, at+len(name), "is not a signal request (form: %s)", SignalForms)
	}
	sig.Number = n
	if timed && seconds == "" {
		sig.Before = 0
	} else if timed {
		before, ok := parseDigits(seconds)
		if !ok || before > 65535 {
			return sig, wrongPart(s, at+len(name)+1, len(s), "has a time that is not 0 to 65535 seconds")
		}
		sig.Before = time.Duration(before) * time.Second
	}
	return sig, nil
}
