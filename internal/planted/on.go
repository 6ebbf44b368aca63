//go:build planted

package planted

import "os"

// The bugs, of which a build with the tag planted has the one that COX_PLANTED names.
var (
	PartOfGang       = os.Getenv("COX_PLANTED") == "part_of_gang"      // what is launched lacks the last node of a gang
	NotUndone        = os.Getenv("COX_PLANTED") == "not_undone"        // a launch that failed is over before what was set up of it is gone
	RestOfGang       = os.Getenv("COX_PLANTED") == "rest_of_gang"      // where one node of a gang fails, the others begin
	FreeUnproved     = os.Getenv("COX_PLANTED") == "free_unproved"     // an attempt of which nobody can tell what lives is freed
	LateReport       = os.Getenv("COX_PLANTED") == "late_report"       // the end of an attempt is taken for that of the next one
	LaunchFirst      = os.Getenv("COX_PLANTED") == "launch_first"      // the engine is called before the journal has what it is to start
	LaunchAgain      = os.Getenv("COX_PLANTED") == "launch_again"      // a server that starts again launches what may run as another attempt
	Unfenced         = os.Getenv("COX_PLANTED") == "unfenced"          // the store takes records of a leader that was followed
	FollowedActs     = os.Getenv("COX_PLANTED") == "followed_acts"     // a server ends what it does not know without asking whether it still leads
	DrainIgnored     = os.Getenv("COX_PLANTED") == "drain_ignored"     // a drained node gets new work
	ReplayForgets    = os.Getenv("COX_PLANTED") == "replay_forgets"    // a hold is forgotten when the journal is replayed
	MapOrder         = os.Getenv("COX_PLANTED") == "map_order"         // decisions are carried out in the order of a map
	EarlyNumber      = os.Getenv("COX_PLANTED") == "early_number"      // a submission is answered before it is durable
	DropReason       = os.Getenv("COX_PLANTED") == "drop_reason"       // jobs behind others wait without a reason
	ArrayLimit       = os.Getenv("COX_PLANTED") == "array_limit"       // the limit of running tasks of an array is not kept
	LostSubmit       = os.Getenv("COX_PLANTED") == "lost_submit"       // a submission that could not be written is answered with a number
	PartTwice        = os.Getenv("COX_PLANTED") == "part_twice"        // a part of a controller's work that is submitted again becomes a second job
	CancelEnded      = os.Getenv("COX_PLANTED") == "cancel_ended"      // a job that has ended is cancelled
	RulesForgotten   = os.Getenv("COX_PLANTED") == "rules_forgotten"   // a server that starts again does not know the site's rules
	UsageLost        = os.Getenv("COX_PLANTED") == "usage_lost"        // what a job used since the last tick is not kept when it ends
	Uncounted        = os.Getenv("COX_PLANTED") == "uncounted"         // when the fleet changes, what runs is no longer counted against limits
	AnyonePreempts   = os.Getenv("COX_PLANTED") == "anyone_preempts"   // a job takes the place of whom it does not outrank
	BorrowsAll       = os.Getenv("COX_PLANTED") == "borrows_all"       // an account borrows more than it may
	ReservationOpen  = os.Getenv("COX_PLANTED") == "reservation_open"  // a reservation does not keep off jobs whose limit reaches into it
	VictimLost       = os.Getenv("COX_PLANTED") == "victim_lost"       // a job that made room is not queued again
	SurgeIgnored     = os.Getenv("COX_PLANTED") == "surge_ignored"     // a service has more replicas than it wants and may have more
	ReadyGivenUp     = os.Getenv("COX_PLANTED") == "ready_given_up"    // a service gives up replicas that are ready before others are
	PlaceTwice       = os.Getenv("COX_PLANTED") == "place_twice"       // a replica is begun anew while the one in its place is being ended
	PartsUncounted   = os.Getenv("COX_PLANTED") == "parts_uncounted"   // what replicas hold is not counted against quotas
	AdmitUnproved    = os.Getenv("COX_PLANTED") == "admit_unproved"    // a machine is admitted in another pool without a proof that it is empty
	UnreachableEmpty = os.Getenv("COX_PLANTED") == "unreachable_empty" // a node of which not all could be seen is taken for empty
	OldUnfence       = os.Getenv("COX_PLANTED") == "old_unfence"       // an engine removes a fence for a call of an earlier hand-over
)
