// How the pages look and whether everybody can use them: light and dark, wide and narrow.

import assert from 'node:assert/strict'
import { mkdir, mkdtemp } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'

import { launch, open } from './support/browser.js'
import { ada, base, question, register, somebody } from './support/okt.js'
import { email, password, signIn, signInButton } from './support/pages.js'

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js')
const LOOPBACK = 'http://127.0.0.1:8765/callback'
// As long as names get, in one piece.
const LONG = 'W'.repeat(100)

let browser
let pictures
let person
before(async () => {
  browser = await launch()
  pictures = process.env.OKT_SCREENSHOTS || (await mkdtemp(join(tmpdir(), 'okt-pages-')))
  await mkdir(pictures, { recursive: true })
  person = await somebody('grace', 3)
})
after(() => browser?.close())

/** Each page, and how one gets there. */
const pages = {
  'sign-in': async (page) => {
    await page.goto(String(question(await register(LOOPBACK))))
  },
  'sign-in-error': async (page) => {
    await page.goto(String(question(await register(LOOPBACK))))
    await email(page).fill(ada.email)
    await password(page).fill('not the password')
    await signInButton(page).click()
    await page.getByRole('alert').waitFor()
  },
  'consent-https': async (page) => {
    await signIn(page, question(await register('https://app.example.org/callback', 'Research Helper')), ada)
  },
  'consent-loopback': async (page) => {
    const scope = 'read mcp fact:write source:write report:write job:cancel'
    await signIn(page, question(await register(LOOPBACK), { scope }), ada)
  },
  'consent-repositories': async (page) => {
    await signIn(page, question(await register(LOOPBACK)), person)
    await page.getByRole('radio').nth(1).check()
  },
  'consent-long-names': async (page) => {
    const host = `${'a-long-name-'.repeat(5)}.${'another-'.repeat(7)}.example.org`.replaceAll('-.', '.')
    await signIn(page, question(await register(`https://${host}/callback`, LONG)), ada)
  },
  error: async (page) => {
    await page.goto(String(question({ client_id: 'client_nobody', redirect_uris: [LOOPBACK] })))
  },
  'error-in-a-form': async (page) => {
    await signIn(page, question(await register(LOOPBACK)), ada)
    // As if the form came from another browser.
    await page.context().clearCookies()
    await page.getByRole('button', { name: 'Allow', exact: true }).click()
    await page.getByRole('alert').waitFor()
  },
}

/** What axe finds, a line each. */
async function violations(page) {
  await page.addScriptTag({ path: AXE })
  const found = await page.evaluate(() => window.axe.run(document))
  return found.violations.flatMap(({ id, help, nodes }) => nodes.map((node) => `${id}: ${help}: ${node.html}`))
}

for (const [name, show] of Object.entries(pages)) {
  for (const colorScheme of ['light', 'dark']) {
    test(`${name} in ${colorScheme} is for everybody`, async () => {
      // axe is a script, so this one browser runs scripts, also against the policy of the page.
      const visit = await open(browser, { colorScheme, javaScriptEnabled: true, bypassCSP: true })
      const { page } = visit
      await show(page)
      assert.equal(new URL(page.url()).origin, base)
      for (const width of [1280, 375, 320]) {
        await page.setViewportSize({ width, height: 800 })
        const [content, screen] = await page.evaluate(() => {
          const { scrollWidth, clientWidth } = document.documentElement
          return [scrollWidth, clientWidth]
        })
        assert.ok(content <= screen, `${content} pixels on a screen of ${width}`)
        if (width !== 320) {
          await page.screenshot({ path: join(pictures, `${name}-${colorScheme}-${width}.png`), fullPage: true })
        }
        if (width !== 375) assert.deepEqual(await violations(page), [], `at ${width} pixels`)
      }
      await visit.close()
    })
  }
}
