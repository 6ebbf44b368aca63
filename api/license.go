package api

// License is a licence that the site counts, and who holds how many of it.
type License struct {
	Name    string          `json:"name"`
	Total   int64           `json:"total" doc:"that the site has"`
	Used    int64           `json:"used" doc:"held by jobs that hold resources; more than total where the site has lowered it"`
	Wanted  int64           `json:"wanted" doc:"asked for by jobs that wait"`
	Holders []LicenseHolder `json:"holders,omitempty" doc:"without jobs that the asker may not see"`
}

// LicenseHolder is a job that holds licences.
type LicenseHolder struct {
	Job   string `json:"job"`
	User  string `json:"user"`
	Count int64  `json:"count"`
}

// Licenses is the answer to a list of licences.
type Licenses struct {
	Licenses []License `json:"licenses"`
}
