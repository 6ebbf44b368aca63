//go:build !linux && !darwin

package peer

import "github.com/coxswain-sched/coxswain/model/fault"

func ask(int) (Credentials, error) {
	return Credentials{}, fault.New(fault.Unsupported, "this system does not say who is at the other end of a socket")
}
