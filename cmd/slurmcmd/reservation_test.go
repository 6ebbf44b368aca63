package slurmcmd_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/scontrol"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/sinfo"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/slurmcmdtest"
)

// reservations lets a server keep one reservation, as the real one would answer.
func reservations(s *slurmcmdtest.Server, r api.Reservation) {
	tell := func(r api.Reservation) api.Reservation {
		from, err := time.Parse(time.RFC3339, r.Start)
		if err == nil {
			until := from.Add(time.Duration(r.Duration) * time.Second)
			r.From, r.Until = &from, &until
		}
		r.Count = len(r.Nodes)
		r.CPUs = int64(64 * r.Count)
		return r
	}
	keep := slurmcmdtest.Func(func(body string) any {
		var req api.SetReservation
		if err := json.Unmarshal([]byte(body), &req); err != nil {
			return &api.Error{Status: 400, Detail: err.Error()}
		}
		r = req.Reservation
		return api.ReservationDone{Reservation: r, Late: []api.Belated{{Job: "7", User: "ben"}}}
	})
	s.Answer["GET /v1/reservations"] = slurmcmdtest.Func(func(string) any {
		return api.Reservations{Revision: 3, Reservations: []api.Reservation{tell(r)}}
	})
	s.Answer["POST /v1/reservations"] = keep
	s.Answer["PUT /v1/reservations/course"] = keep
	s.Answer["DELETE /v1/reservations/course"] = api.ReservationDone{}
}

// TestReservations: what scontrol and sinfo print of reservations is what Slurm 22.05
// printed of the same ones (PartitionName= and Features= are those that were asked for
// there), and what is asked of the server is what was meant.
func TestReservations(t *testing.T) {
	t.Setenv("TZ", "UTC")
	s := slurmcmdtest.New(t)
	reservations(s, api.Reservation{})
	scontrolled := func(args string) slurmcmdtest.Result { return s.Run(scontrol.Main, "", strings.Fields(args)...) }
	r := scontrolled("create reservation ReservationName=course StartTime=2026-12-03T08:00:00 EndTime=2026-12-03T10:00:00 Nodes=n[1-4] Accounts=a,b Flags=WEEKDAY,FLEX")
	if r.Out != "Reservation created: course\n" || r.Err != "scontrol: job 7 of ben may start later than it was promised\n" || r.Code != 0 {
		t.Fatalf("create: %+v", r)
	}
	const shown = `ReservationName=course StartTime=2026-12-03T08:00:00 EndTime=2026-12-03T10:00:00 Duration=02:00:00
   Nodes=n[1-4] NodeCnt=4 CoreCnt=256 Features=(null) PartitionName=(null) Flags=FLEX,WEEKDAY,SPEC_NODES
   TRES=cpu=256
   Users=(null) Groups=(null) Accounts=a,b Licenses=(null) State=INACTIVE BurstBuffer=(null) Watts=n/a
   MaxStartDelay=(null)

`
	if r := scontrolled("show reservation course"); r.Out != shown {
		t.Errorf("show:\n%s", r.Out)
	}
	if r := s.Run(sinfo.Main, "", "-T"); r.Out != "RESV_NAME     STATE           START_TIME             END_TIME     DURATION  NODELIST\n"+
		"course     INACTIVE  2026-12-03T08:00:00  2026-12-03T10:00:00     02:00:00  n[1-4]\n" {
		t.Errorf("sinfo -T:\n%s", r.Out)
	}
	if r := scontrolled("update ReservationName=course Nodes=n[5-6] EndTime=2026-12-03T12:00:00 Flags-=FLEX Accounts-=b Users+=mail"); r.Out != "Reservation updated.\n" {
		t.Errorf("update: %+v", r)
	}
	if r := scontrolled("-o show res=course"); !strings.HasPrefix(r.Out, "ReservationName=course StartTime=2026-12-03T08:00:00 EndTime=2026-12-03T12:00:00 Duration=04:00:00 "+
		"Nodes=n[5-6] NodeCnt=2 CoreCnt=128 Features=(null) PartitionName=(null) Flags=WEEKDAY,SPEC_NODES TRES=cpu=128 Users=mail Groups=(null) Accounts=a ") {
		t.Errorf("after the update:\n%s", r.Out)
	}
	if !strings.Contains(s.Body(), `"base":3`) {
		t.Errorf("the update does not say on what it was made: %s", s.Body())
	}
	scontrolled("create res=f starttime=now+60minutes duration=1-00:00:00 nodecnt=2 partition=low user=games flags=time_float,ignore_jobs")
	if got := s.Body(); got != `{"name":"f","partition":"low","users":["games"],"duration":86400,"ahead":3600,"count":2,"ignore_jobs":true}` {
		t.Errorf("a floating one by number asks for %s", got)
	}
	for line, want := range map[string]string{
		"create":     "too few arguments for create keyword\n",
		"create foo": "scontrol: error: Invalid creation entity: foo\n",
		"create reservation ReservationName=x Nodes=n8 Accounts=a":                                      "scontrol: error: A start time must be given.\nscontrol: error: No reservation created.\n",
		"create reservation ReservationName=x StartTime=now Duration=1 Nodes=n8":                        "scontrol: error: Either Users/Groups and/or Accounts must be specified.\nscontrol: error: No reservation created.\n",
		"create reservation ReservationName=x StartTime=2026-12-07 Duration=60 NodeCnt=9 Users=m Foo=3": "scontrol: error: Unknown parameter Foo=3.\nscontrol: error: No reservation created.\n",
		"create reservation StartTime=2026-12-07 Duration=60 NodeCnt=1 Users=man Flags=FOO":             "scontrol: error: Error parsing flags FOO.\nscontrol: error: No reservation created.\n",
		"create reservation StartTime=2026-12-07 Duration=60 CoreCnt=4 Users=man":                       "scontrol: error: CoreCnt of a reservation is not built\nscontrol:   docs/explanation/reservations.md says what there is: whole nodes, for accounts and users\n",
		"update ReservationName=nope Duration=3":                                                        "Error updating the reservation: Requested reservation is invalid\nslurm_update error: Requested reservation is invalid\n",
		"delete reservation=nope":                                                                       "delete_reservation reservation=nope: Requested reservation is invalid\n",
		"delete":                                                                                        "too few arguments for delete keyword\n",
	} {
		if r := scontrolled(line); r.Err != want || r.Code != 1 {
			t.Errorf("scontrol %s: exit %d, %q, want %q", line, r.Code, r.Err, want)
		}
	}
	if r := scontrolled("delete ReservationName=course"); r.Code != 0 || r.Out+r.Err != "" {
		t.Errorf("delete: %+v", r)
	}
}
