package rest

import (
	"fmt"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// Refusal is what Slurm said to a request.
type Refusal struct {
	Errno int    // Slurm's own number; 0 and below: it gave none
	Said  string // in its words
}

// Error is the text with the number.
func (r *Refusal) Error() string {
	if r.Errno == 0 || r.Errno == unauthorized {
		return r.Said
	}
	return fmt.Sprintf("%s (Slurm's error %d)", r.Said, r.Errno)
}

// Numbers of slurm_errno.h that mean something of their own here.
const (
	errAuthentication = 1007 // ESLURM_PROTOCOL_AUTHENTICATION… : the token
	errAccess         = 2002 // ESLURM_ACCESS_DENIED
	errUserID         = 2010 // ESLURM_USER_ID_MISSING
	errJobID          = 2017 // ESLURM_INVALID_JOB_ID
	errWriting        = 2019 // ESLURM_WRITING_TO_FILE
	errNotNow         = 2020 // ESLURM_TRANSITION_STATE_NO_UPDATE
	errAlreadyDone    = 2021 // ESLURM_ALREADY_DONE
	errZeroBytes      = 5005 // SLURM_PROTOCOL_SOCKET_ZERO_BYTES_SENT: 22.05 says this of a token too
	errPolicy         = 2050 // ESLURM_ACCOUNTING_POLICY: a limit of QOS or association, and slurmrestd does not say which
	errDatabase       = 7000 // ESLURM_DB_CONNECTION
	errFinished       = 2084 // ESLURM_JOB_FINISHED
	errNothing        = 9003 // ESLURM_REST_EMPTY_RESULT
)

// notNow are slurmctld's own numbers for what it may do when it is asked again.
var notNow = map[int]bool{
	2007:       true, // unable to create job record, try again
	errWriting: true, // I/O error writing script/environment to file
	2020:       true, // job can not be altered now, try again later
	2026:       true, // error generating job credential
	2027:       true, // backup controller in standby mode
	2037:       true, // requested operation is presently disabled
	2061:       true, // PrologSlurmctld is still running
	2090:       true, // internal error
	2103:       true, // the DB index is being set, try again in a bit
	2131:       true, // controller is in standby mode
}

// kindOf says what a number of Slurm's means: whether it is slurmctld's own refusal, or
// says nothing of what has happened. Numbers that are not known say nothing.
func kindOf(errno int) fault.Kind {
	switch {
	case errno == errJobID, errno == errNothing:
		return fault.NotFound
	case errno == errAccess:
		return fault.Permission
	case errno == errPolicy:
		return fault.Exhausted
	case notNow[errno]:
		return fault.Unavailable
	case errno >= 2000 && errno < 3000, errno == 8000: // slurmctld's
		return fault.Invalid
	case errno >= 9000 && errno < 10000: // slurmrestd's, of what it could not read: it has asked nobody
		return fault.Invalid
	}
	return fault.Unavailable // the network's (1000…, 5000…), the credential's (6000…), the database's (7000…), errno(3)'s
}

// blamesToken reports whether a number may mean that the token is not taken (any more).
func blamesToken(errno int) bool {
	return errno == errAuthentication || errno == errZeroBytes || errno == -1 || errno == errDatabase || errno >= 6000 && errno < 7000
}
