// Package reports has the route of reports, GET /v1/reports/{kind}, and what is spent of budgets.
//
// The numbers are made by package model/report. This package reads the jobs, those in memory and
// those of the store, each once, and writes a report as JSON, CSV, Markdown or a page of HTML. The
// memory for a report does not grow with the number of jobs.
//
// Guarantees. A caller's report counts the jobs that the caller may see, and no others: where jobs
// are private, those of the caller alone. The page of HTML is whole in itself: it loads nothing, has no
// script, and every name in it is escaped. A cell of CSV is not read as a formula by a spreadsheet.
package reports
