// Package console serves the web console to browsers: the page and its files, and the plain pages
// that tell people what to do where there is no console or no session.
//
// Guarantees. Every page has a Content-Security-Policy that allows nothing from another address,
// no script and no style in the page itself, and no frame around it. A path of the API is never
// answered with a page. Files whose name has a hash may be kept for ever; every other file is asked
// for again.
//
// It keeps no state of jobs or nodes: the console asks the API, as every client does.
package console
