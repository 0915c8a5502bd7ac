// Package writer sends rows. The rows of one batch come in as PlainBuffer bytes, one outcome a row goes out; rows that may
// not be sent twice as they are get a mark or a timestamp on the way, and are looked for before they are sent again. It
// promises that each row gets exactly one outcome, that a request refused as a whole for its content is halved until the
// bad row stands alone, and that nothing is called written without the service's word. It does not wait, does not decide
// when to try again, and knows nothing of files, lanes and rates.
package writer
