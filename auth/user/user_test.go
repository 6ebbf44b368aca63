package user

import (
	"os"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
)

func TestThisUserOfTheSystem(t *testing.T) {
	var u Users
	me := u.ByUID(uint32(os.Getuid()))
	if me.UID != uint32(os.Getuid()) || me.Name == "" {
		t.Fatalf("%+v", me)
	}
	if !me.Known {
		t.Skip("this process has a user without a name")
	}
	same, err := u.ByName(me.Name)
	if err != nil || same != me {
		t.Errorf("%+v, %v; by number %+v", same, err, me)
	}
	if len(u.Groups(me.Name)) == 0 {
		t.Error("in no group")
	}
}

func TestANumberWithoutAName(t *testing.T) {
	var u Users
	if got := u.ByUID(3999999999); got.Known || got.Name != "3999999999" || got.UID != 3999999999 {
		t.Errorf("%+v", got)
	}
	if _, err := u.ByName("no-such-user-here"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("%v", err)
	}
	if u.In("no-such-user-here", "root") {
		t.Error("nobody is in root's group")
	}
}

func TestAnAnswerIsKeptForAMinute(t *testing.T) {
	asked, now := 0, time.Unix(1e9, 0)
	u := Users{
		Now: func() time.Time { return now },
		Lookup: func(key string, _ bool) (User, error) {
			asked++
			return User{Name: key, UID: 7, Known: true}, nil
		},
	}
	for range 5 {
		u.ByUID(7)
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	now = now.Add(remember)
	u.ByUID(7)
	if asked != 2 {
		t.Errorf("asked %d times after the minute", asked)
	}
}
