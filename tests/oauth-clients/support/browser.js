// A real browser that tells on the pages: what they log, what they ask of others, what their policy stopped.

import assert from 'node:assert/strict'

import { chromium } from 'playwright-core'

import { base } from './okt.js'

const OPTIONS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--no-first-run',
]

export function launch() {
  return chromium.launch({ executablePath: process.env.OKT_CHROMIUM || '/usr/bin/chromium', args: OPTIONS })
}

/**
 * A browser of its own with one page, without script unless told otherwise. `elsewhere` names the origins besides ours
 * that may be asked for something.
 */
export async function open(browser, { elsewhere = [], ...options } = {}) {
  const context = await browser.newContext({ javaScriptEnabled: false, ...options })
  context.setDefaultTimeout(15_000)
  const page = await context.newPage()
  const complaints = new Set()
  const strangers = []
  const statuses = []
  page.on('pageerror', (error) => complaints.add(`error: ${error}`))
  page.on('request', (request) => {
    const { origin } = new URL(request.url())
    if (![base, ...elsewhere].includes(origin)) strangers.push(request.url())
  })
  page.on('response', (response) => statuses.push(response.status()))
  const devtools = await context.newCDPSession(page)
  const complain = ({ level, text }) => {
    // That a page has a status other than 200 is logged as an error too, and is no fault of the page.
    if (['error', 'warning'].includes(level) && !/^Failed to load resource: the server responded/.test(text)) {
      complaints.add(`${level}: ${text}`)
    }
  }
  devtools.on('Log.entryAdded', ({ entry }) => complain(entry))
  devtools.on('Audits.issueAdded', ({ issue }) => complaints.add(`issue: ${JSON.stringify(issue)}`))
  page.on('console', (message) => complain({ level: message.type(), text: message.text() }))
  await devtools.send('Log.enable')
  await devtools.send('Audits.enable')

  return {
    page,
    context,
    statuses,
    complaints,
    /** Nothing was logged, nothing was stopped, and nobody else was asked for anything. */
    async close() {
      await context.close()
      assert.deepEqual([...complaints], [], 'the browser complains')
      assert.deepEqual(strangers, [], 'somebody else was asked')
    },
  }
}
