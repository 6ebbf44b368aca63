package sinfo

import (
	"fmt"

	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/jobs"
	"github.com/coxswain-sched/coxswain/model/hostlist"
)

// printReservations prints sinfo -T: the reservations in advance that are not over.
func (s *show) printReservations() error {
	c, err := s.Client()
	if err != nil {
		return err
	}
	v, err := c.JSON("GET", "/v1/reservations", nil)
	if err != nil {
		return err
	}
	wide := len("RESV_NAME")
	for _, r := range v.Get("reservations").Items() {
		wide = max(wide, len(r.Get("name").Text()))
	}
	shown := 0
	if !s.noHeader {
		s.writeHeading(s.heading)
	}
	line := func(name, state, from, until, span, nodes string) {
		fmt.Fprintf(s.Out, "%-*s  %8s  %19s  %19s  %11s  %s\n", wide, name, state, from, until, span, nodes)
	}
	for _, r := range v.Get("reservations").Items() {
		from, until := r.Get("from").Time(), r.Get("until").Time()
		if from.IsZero() {
			continue // it is over
		}
		if shown++; shown == 1 && !s.noHeader {
			line("RESV_NAME", "STATE", "START_TIME", "END_TIME", "DURATION", "NODELIST")
		}
		state, nodes := "INACTIVE", "ALL"
		if r.Get("active").Bool() {
			state = "ACTIVE"
		}
		if list := r.Get("nodes").Texts(); len(list) > 0 {
			nodes = hostlist.Compress(list)
		}
		const stamp = "2006-01-02T15:04:05"
		line(r.Get("name").Text(), state, from.Local().Format(stamp), until.Local().Format(stamp),
			string(jobs.AppendLongSpan(nil, r.Get("duration").Int())), nodes)
	}
	if shown == 0 {
		s.Out.WriteString("No reservations in the system\n")
	}
	return nil
}
