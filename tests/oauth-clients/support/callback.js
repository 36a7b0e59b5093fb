// Where a native client waits for the answer: a real server on loopback.

import { once } from 'node:events'
import { createServer } from 'node:http'

const PATIENCE = 20_000

const DONE = '<!doctype html><html lang="en"><title>Done</title><link rel="icon" href="data:,"><h1>Done</h1>'

/** `host` as it stands in an address. The port is whatever is free, as native clients do it. */
export async function listen(host = '127.0.0.1', page = DONE) {
  const answers = []
  let heard = () => {}
  const server = createServer((request, response) => {
    response.setHeader('connection', 'close')
    response.setHeader('content-type', 'text/html')
    if (!request.url.startsWith('/callback')) return response.writeHead(404).end()
    answers.push({ method: request.method, headers: request.headers, url: new URL(request.url, redirectUri) })
    response.end(page)
    heard()
  })
  server.listen(0, host.replace(/[[\]]/g, ''))
  await once(server, 'listening')
  const redirectUri = `http://${host}:${server.address().port}/callback`

  return {
    redirectUri,
    answers,
    /** The first answer. */
    async answer() {
      if (answers.length === 0) {
        await new Promise((resolve, reject) => {
          const late = setTimeout(() => reject(new Error(`no answer came to ${redirectUri}`)), PATIENCE)
          heard = () => {
            clearTimeout(late)
            resolve()
          }
        })
      }
      return answers[0].url
    },
    close: () => new Promise((resolve) => server.close(resolve)),
  }
}
