// Package planted has bugs that were put in on purpose. They show that the tests of the
// five promises find what they are there for: test/simulate builds itself once with the
// build tag planted and runs that program once for each bug, which COX_PLANTED names. Each
// run has to find its bug and to name the promise that it breaks.
//
// Without the tag every bug is a constant that is false, and the compiler removes the wrong
// code, so the product does not have it; a test of this package and one of test/simulate
// watch that. Nothing else belongs here, and a package may use these only to be wrong.
package planted

// Bug is one of them.
type Bug struct {
	Name string // as COX_PLANTED names it
	On   bool   // whether this program has it
	Does string // what is wrong
}

// Bugs lists them, by the promise that they break.
func Bugs() []Bug {
	return []Bug{
		{"part_of_gang", PartOfGang, "what is launched lacks the last node of a gang"},
		{"not_undone", NotUndone, "a launch that failed is over before what was set up of it is gone"},
		{"rest_of_gang", RestOfGang, "where one node of a gang fails, the others begin"},

		{"free_unproved", FreeUnproved, "an attempt of which nobody can tell what lives is freed"},
		{"late_report", LateReport, "the end of an attempt is taken for that of the next one"},
		{"launch_first", LaunchFirst, "the engine is called before the journal has what it is to start"},
		{"launch_again", LaunchAgain, "a server that starts again launches what may run as another attempt"},

		{"unfenced", Unfenced, "the store takes records of a leader that was followed"},
		{"followed_acts", FollowedActs, "a server ends what it does not know without asking whether it still leads"},
		{"drain_ignored", DrainIgnored, "a drained node gets new work"},

		{"replay_forgets", ReplayForgets, "a hold is forgotten when the journal is replayed"},
		{"map_order", MapOrder, "decisions are carried out in the order of a map"},

		{"early_number", EarlyNumber, "a submission is answered before it is durable"},
		{"drop_reason", DropReason, "jobs behind others wait without a reason"},
		{"array_limit", ArrayLimit, "the limit of running tasks of an array is not kept"},
		{"lost_submit", LostSubmit, "a submission that could not be written is answered with a number"},
		{"part_twice", PartTwice, "a part of a controller's work that is submitted again becomes a second job"},
		{"cancel_ended", CancelEnded, "a job that has ended is cancelled"},

		{"rules_forgotten", RulesForgotten, "a server that starts again does not know the site's rules"},
		{"usage_lost", UsageLost, "what a job used since the last tick is not kept when it ends"},
		{"uncounted", Uncounted, "when the fleet changes, what runs is no longer counted against limits"},
		{"anyone_preempts", AnyonePreempts, "a job takes the place of whom it does not outrank"},
		{"borrows_all", BorrowsAll, "an account borrows more than it may"},
		{"reservation_open", ReservationOpen, "a reservation does not keep off jobs whose limit reaches into it"},
		{"victim_lost", VictimLost, "a job that made room is not queued again"},

		{"surge_ignored", SurgeIgnored, "a service has more replicas than it wants and may have more"},
		{"ready_given_up", ReadyGivenUp, "a service gives up replicas that are ready before others are"},
		{"place_twice", PlaceTwice, "a replica is begun anew while the one in its place is being ended"},
		{"parts_uncounted", PartsUncounted, "what replicas hold is not counted against quotas"},

		{"admit_unproved", AdmitUnproved, "a machine is admitted in another pool without a proof that it is empty"},
		{"unreachable_empty", UnreachableEmpty, "a node of which not all could be seen is taken for empty"},
		{"old_unfence", OldUnfence, "an engine removes a fence for a call of an earlier hand-over"},
	}
}
